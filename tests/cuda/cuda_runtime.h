/* The CUDA runtime on a machine without a GPU, as far as opdispatch_cuda.cu uses it: device code compiled as plain C++17
   and run thread by thread, so that its results can be checked anywhere.

     g++ -std=c++17 -Itests/cuda -x c++ -c opdispatch_cuda.cu

   Every thread of a block is a fiber; barriers and warp shuffles switch between them, and a block whose threads wait
   at different barriers is an error.  Blocks run one after another, threads in rising order in every second launch and
   in falling order in the others, so that a missing barrier shows.  With OPD_EMU_GUARD=1 device memory cannot be touched by
   the host between launches; under the address sanitizer it is checked for its ends.  Streams do at once what is queued on them; while
   one is captured, it is kept instead.  A kernel that traps makes every later call fail, as on a GPU.

   What it does not show: races between blocks, memory order, what a compiler for GPUs does, speed.

   Environment: OPD_EMU_DEVICES=2 devices (0: a machine without one; -1: without a driver),
                OPD_EMU_MEMORY=1073741824 bytes of each. */
#ifndef OPD_EMU_CUDA_RUNTIME_H
#define OPD_EMU_CUDA_RUNTIME_H

#define OPD_CUDA_EMULATED 1
#define CUDART_VERSION 13000
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if defined(__SANITIZE_ADDRESS__)
#define OPD_EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OPD_EMU_ASAN 1
#endif
#endif
#if defined(OPD_EMU_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

//-- the language -------------------------------------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

#define OPD_EMU_VECTORS(T, name, a)                                                                                 \
    struct alignas(a) name##1 { T x; };                                                                             \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                                              \
    struct name##3 { T x, y, z; };                                                                                  \
    struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; };                              \
    static inline name##2 make_##name##2(T x, T y) { name##2 v = {x, y}; return v; }                                \
    static inline name##3 make_##name##3(T x, T y, T z) { name##3 v = {x, y, z}; return v; }                        \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { name##4 v = {x, y, z, w}; return v; }
OPD_EMU_VECTORS(signed char, char, 1)
OPD_EMU_VECTORS(unsigned char, uchar, 1)
OPD_EMU_VECTORS(short, short, 2)
OPD_EMU_VECTORS(unsigned short, ushort, 2)
OPD_EMU_VECTORS(int, int, 4)
OPD_EMU_VECTORS(unsigned, uint, 4)
OPD_EMU_VECTORS(long long, longlong, 8)
OPD_EMU_VECTORS(unsigned long long, ulonglong, 8)
OPD_EMU_VECTORS(float, float, 4)
OPD_EMU_VECTORS(double, double, 8)
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

//-- errors -------------------------------------------------------------------------------------------------------

#define OPD_EMU_ERRORS(X)                                                                                           \
    X(cudaSuccess, 0, "no error") X(cudaErrorInvalidValue, 1, "invalid argument")                                   \
    X(cudaErrorMemoryAllocation, 2, "out of memory") X(cudaErrorInitializationError, 3, "initialization error")     \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                                           \
    X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")              \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                                 \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                                        \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                               \
    X(cudaErrorNotReady, 600, "device not ready")                                                                   \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                                     \
    X(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                                     \
    X(cudaErrorAssert, 710, "device-side assert triggered") X(cudaErrorLaunchFailure, 719, "unspecified launch failure") \
    X(cudaErrorNotSupported, 801, "operation not supported")                                                        \
    X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")                   \
    X(cudaErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture")            \
    X(cudaErrorStreamCaptureUnmatched, 903, "the capture was not initiated in this stream")                         \
    X(cudaErrorUnknown, 999, "unknown error")
enum cudaError {
#define OPD_EMU_ERROR(name, number, text) name = number,
    OPD_EMU_ERRORS(OPD_EMU_ERROR)
#undef OPD_EMU_ERROR
};
typedef enum cudaError cudaError_t;
static inline const char *cudaGetErrorName(cudaError_t e) {
    switch (e) {
#define OPD_EMU_ERROR(name, number, text) case name: return #name;
    OPD_EMU_ERRORS(OPD_EMU_ERROR)
#undef OPD_EMU_ERROR
    }
    return "unrecognized error code";
}
static inline const char *cudaGetErrorString(cudaError_t e) {
    switch (e) {
#define OPD_EMU_ERROR(name, number, text) case name: return text;
    OPD_EMU_ERRORS(OPD_EMU_ERROR)
#undef OPD_EMU_ERROR
    }
    return "unrecognized error code";
}

//-- fibers -------------------------------------------------------------------------------------------------------
//
//  Made with makecontext, switched with _setjmp and _longjmp, which make no system call.

namespace opd_emu {

#if defined(OPD_EMU_ASAN)
const size_t STACK = 1 << 19;
#else
const size_t STACK = 1 << 16;
#endif
enum State { READY, AT_WARP, AT_BLOCK, DONE };
struct Slot { alignas(16) unsigned char bytes[16]; };
struct Warp { Slot slots[2][32]; int kind; };

struct Fiber {
    ucontext_t context;
    jmp_buf at;
    char *stack;
    bool begun;
    void *fake;
};
struct Thread {
    uint3 index;
    State state;
    int kind, parity;                             // of the barrier it waits at, of its warp's slots
    Fiber *fiber;
};

struct Machine {
    std::recursive_mutex lock;
    // the block that runs
    uint3 thread, block;
    dim3 block_dim, grid_dim;
    Thread *now;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    std::vector<Fiber *> idle;
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::function<void()> body;
    std::vector<unsigned char> shared_bytes;
    unsigned char *shared;
    int block_value[3];                           // of __syncthreads_or, _and, _count
    jmp_buf scheduler;
    void *fake; const void *stack_bottom; size_t stack_size;
    bool running, stopped;
    unsigned long launches;
    // the devices
    cudaError_t sticky;
    std::map<char *, std::pair<size_t, int>> blocks; // address: bytes, device
    std::map<char *, size_t> holes;
    std::map<const void *, size_t> dynamic_limit;
    size_t used[16], peak_blocks;
    char *region; size_t region_bytes;
    int open;                                     // device memory can be touched while this is not 0
    Machine() : now(NULL), shared(NULL), running(false), stopped(false), launches(0), sticky(cudaSuccess), used(),
        peak_blocks(0), region(NULL), region_bytes(0), open(0) { fake = NULL; stack_bottom = NULL; stack_size = 0; }
};
inline Machine machine;
inline thread_local cudaError_t last_error = cudaSuccess;
inline thread_local int current_device = 0;

inline long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}
inline int devices() { static const int n = (int)setting("OPD_EMU_DEVICES", 2); return n > 16 ? 16 : n; }
inline cudaError_t note(cudaError_t e) { if (e != cudaSuccess) { last_error = e; } return e; }
/* What every call asks first. */
inline cudaError_t usable() {
    if (devices() < 0) { return cudaErrorInsufficientDriver; }
    if (devices() == 0) { return cudaErrorNoDevice; }
    return machine.sticky;
}

inline void switch_begin(void **fake, const void *bottom, size_t size) {
#if defined(OPD_EMU_ASAN)
    __sanitizer_start_switch_fiber(fake, bottom, size);
#else
    (void)fake; (void)bottom; (void)size;
#endif
}
inline void switch_end(void *fake, const void **bottom, size_t *size) {
#if defined(OPD_EMU_ASAN)
    __sanitizer_finish_switch_fiber(fake, bottom, size);
#else
    (void)fake; (void)bottom; (void)size;
#endif
}
/* From a fiber back to the scheduler. */
inline void leave() {
    Fiber *f = machine.now->fiber;
    if (_setjmp(f->at) == 0) {
        switch_begin(&f->fake, machine.stack_bottom, machine.stack_size);
        _longjmp(machine.scheduler, 1);
    }
    switch_end(f->fake, &machine.stack_bottom, &machine.stack_size);
}
/* A fiber runs one thread after another, each for as long as it likes. */
inline void fiber_main() {
    switch_end(NULL, &machine.stack_bottom, &machine.stack_size);
    for (;;) {
        machine.body();
        machine.now->state = DONE;
        leave();
    }
}
inline Fiber *fiber_get() {
    if (machine.idle.empty()) {
        machine.fibers.emplace_back(new Fiber());
        Fiber *f = machine.fibers.back().get();
        f->stack = (char *)mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (f->stack == MAP_FAILED) { fprintf(stderr, "emulated CUDA: no memory for a thread\n"); abort(); }
        f->begun = false; f->fake = NULL;
        machine.idle.push_back(f);
    }
    Fiber *f = machine.idle.back();
    machine.idle.pop_back();
    return f;
}
/* Lets a thread run until it waits or ends. */
inline void enter(Thread *t) {
    machine.now = t;
    machine.thread = t->index;
    if (!t->fiber) { t->fiber = fiber_get(); }
    Fiber *f = t->fiber;
    if (_setjmp(machine.scheduler) == 0) {
        switch_begin(&machine.fake, f->stack, STACK);
        if (f->begun) { _longjmp(f->at, 1); }
        f->begun = true;
        getcontext(&f->context);
        f->context.uc_stack.ss_sp = f->stack;
        f->context.uc_stack.ss_size = STACK;
        f->context.uc_link = NULL;
        makecontext(&f->context, fiber_main, 0);
        setcontext(&f->context);
    }
    switch_end(machine.fake, NULL, NULL);
    machine.now = NULL;
    if (t->state == DONE) { machine.idle.push_back(t->fiber); t->fiber = NULL; }
}

//-- a block ------------------------------------------------------------------------------------------------------

inline void wait(State state, int kind) {
    machine.now->state = state;
    machine.now->kind = kind;
    leave();
}
inline void complain(const char *what) {
    fprintf(stderr, "emulated CUDA: block %u,%u,%u of launch %lu: %s\n", machine.block.x, machine.block.y, machine.block.z,
            machine.launches, what);
    machine.sticky = cudaErrorLaunchFailure;
    machine.stopped = true;
}
/* Whether those that wait at barrier `state` among threads [from, to) are all that live: then lets them go. */
inline bool release(State state, size_t from, size_t to) {
    int kind = -1;
    size_t waiting = 0, i;
    for (i = from; i < to; i++) {
        const Thread &t = machine.threads[i];
        if (t.state == DONE) { continue; }
        if (t.state != state) { return false; }
        if (kind >= 0 && kind != t.kind) { complain("its threads wait at different barriers"); return false; }
        kind = t.kind;
        waiting++;
    }
    for (i = from; i < to; i++) { if (machine.threads[i].state == state) { machine.threads[i].state = READY; } }
    return waiting > 0;
}
inline void run_block(bool falling) {
    const size_t n = machine.threads.size();
    for (;;) {
        bool moved = false, alive = false;
        for (size_t k = 0; k < n && !machine.stopped; k++) {
            Thread &t = machine.threads[falling ? n - 1 - k : k];
            if (t.state == READY) { enter(&t); moved = true; }
        }
        if (machine.stopped) { break; }
        for (size_t w = 0; w < n; w += 32) { if (release(AT_WARP, w, std::min(w + 32, n))) { moved = true; } }
        if (!moved && release(AT_BLOCK, 0, n)) { moved = true; }
        for (size_t k = 0; k < n; k++) { alive = alive || machine.threads[k].state != DONE; }
        if (!alive) { return; }
        if (!moved && !machine.stopped) { complain("some of its threads wait at a barrier that others never reach"); }
    }
    for (size_t k = 0; k < n; k++) {              // what is on the stacks of a stopped block is given up
        if (machine.threads[k].fiber) { machine.threads[k].fiber->begun = false; machine.idle.push_back(machine.threads[k].fiber); }
    }
}
[[noreturn]] inline void trap() {
    machine.sticky = cudaErrorAssert;
    machine.stopped = true;
    leave();
    abort();
}

//-- memory -------------------------------------------------------------------------------------------------------

inline bool guarded() { static const bool on = setting("OPD_EMU_GUARD", 0) != 0; return on; }
inline void memory_open() {
    if (machine.open++ == 0 && machine.region && guarded()) { mprotect(machine.region, machine.region_bytes, PROT_READ | PROT_WRITE); }
}
inline void memory_close() {
    if (--machine.open == 0 && machine.region && guarded()) { mprotect(machine.region, machine.region_bytes, PROT_NONE); }
}
struct Open { Open() { machine.lock.lock(); memory_open(); } ~Open() { memory_close(); machine.lock.unlock(); } };

inline size_t capacity() { static const size_t n = (size_t)setting("OPD_EMU_MEMORY", 1L << 30); return n; }
inline char *region_take(size_t bytes) {
#if defined(OPD_EMU_ASAN)
    return (char *)aligned_alloc(256, bytes);
#else
    if (!machine.region) {
        machine.region_bytes = capacity() * (size_t)(devices() > 0 ? devices() : 1) + (1 << 20);
        machine.region = (char *)mmap(NULL, machine.region_bytes, guarded() ? PROT_NONE : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (machine.region == MAP_FAILED) { machine.region = NULL; return NULL; }
        machine.holes[machine.region] = machine.region_bytes;
        if (machine.open && guarded()) { mprotect(machine.region, machine.region_bytes, PROT_READ | PROT_WRITE); }
    }
    for (auto &hole : machine.holes) {
        char *at = hole.first;
        const size_t size = hole.second;
        if (size < bytes) { continue; }
        machine.holes.erase(at);
        if (size > bytes) { machine.holes[at + bytes] = size - bytes; }
        return at;
    }
    return NULL;
#endif
}
inline void region_give(char *at, size_t bytes) {
#if defined(OPD_EMU_ASAN)
    (void)bytes;
    free(at);
#else
    auto next = machine.holes.upper_bound(at);
    if (next != machine.holes.end() && at + bytes == next->first) { bytes += next->second; next = machine.holes.erase(next); }
    if (next != machine.holes.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == at) { before->second += bytes; return; }
    }
    machine.holes[at] = bytes;
#endif
}
/* The allocation that holds p; blocks.end(): none. */
inline std::map<char *, std::pair<size_t, int>>::iterator block_of(const void *p) {
    auto at = machine.blocks.upper_bound((char *)p);
    if (at == machine.blocks.begin()) { return machine.blocks.end(); }
    --at;
    return (const char *)p < at->first + at->second.first ? at : machine.blocks.end();
}
/* Whether [p, p + bytes) lies in one allocation, or is the host's. */
inline bool inside(const void *p, size_t bytes) {
    auto at = block_of(p);
    if (at != machine.blocks.end()) { return (const char *)p + bytes <= at->first + at->second.first; }
    return !(machine.region && (const char *)p >= machine.region && (const char *)p < machine.region + machine.region_bytes);
}

//-- streams, events, graphs --------------------------------------------------------------------------------------

struct Graph { std::vector<std::function<cudaError_t()>> work; };
struct Stream { int device; Graph *capture; bool foreign; };
struct Event { double at; bool recorded; int device; Stream *in_capture; };
inline double clock_ms() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
inline std::vector<Stream *> capturing;
inline Stream *legacy() { static Stream streams[16]; return &streams[current_device & 15]; }
inline Stream *stream_of(void *s) { return (uintptr_t)s <= 2 ? legacy() : (Stream *)s; }
/* Does the work now, or keeps it where the stream is captured. */
inline cudaError_t queue(void *s, const std::function<cudaError_t()> &work) {
    Stream *stream = stream_of(s);
    if (usable() != cudaSuccess) { return note(usable()); }
    if (stream->capture) { stream->capture->work.push_back(work); return cudaSuccess; }
    return note(work());
}
/* What may not be done while anything is captured. */
inline bool relaxed;                              // the mode of the last capture
inline cudaError_t uncaptured() {
    std::lock_guard<std::recursive_mutex> guard(machine.lock);
    if (usable() != cudaSuccess) { return note(usable()); }
    return capturing.empty() ? cudaSuccess : note(cudaErrorStreamCaptureUnsupported);
}

inline cudaError_t launch_now(dim3 grid, dim3 block, size_t shared, const std::function<void()> &body) {
    Open open;
    const size_t n = (size_t)block.x * block.y * block.z;
    if (machine.running) { fprintf(stderr, "emulated CUDA: a launch inside a kernel\n"); abort(); }
    machine.running = true; machine.stopped = false;
    machine.launches++;
    machine.body = body;
    machine.block_dim = block; machine.grid_dim = grid;
    machine.shared_bytes.resize(shared + 16);
    machine.shared = (unsigned char *)(((uintptr_t)machine.shared_bytes.data() + 15) & ~(uintptr_t)15);
    machine.warps.resize((n + 31) / 32);
    for (unsigned z = 0; z < grid.z && !machine.stopped; z++) {
        for (unsigned y = 0; y < grid.y && !machine.stopped; y++) {
            for (unsigned x = 0; x < grid.x && !machine.stopped; x++) {
                machine.block.x = x; machine.block.y = y; machine.block.z = z;
                if (shared) { memset(machine.shared, 0xab, shared); }
                machine.threads.assign(n, Thread());
                for (size_t i = 0; i < n; i++) {
                    uint3 at = {(unsigned)(i % block.x), (unsigned)(i / block.x % block.y), (unsigned)(i / block.x / block.y)};
                    machine.threads[i].index = at;
                }
                run_block(machine.launches % 2 == 0);
            }
        }
    }
    machine.running = false;
    return machine.sticky;
}

//-- what the threads of a warp exchange --------------------------------------------------------------------------

inline int lane() {
    return (int)((machine.thread.x + machine.block_dim.x * (machine.thread.y + machine.block_dim.y * machine.thread.z)) & 31);
}
inline Warp &warp() { return machine.warps[(size_t)(machine.now - machine.threads.data()) / 32]; }
inline int warp_lanes() {
    const size_t first = (size_t)(machine.now - machine.threads.data()) / 32 * 32;
    return (int)std::min<size_t>(32, machine.threads.size() - first);
}
/* Shows v to the warp, waits for what all of it show, and takes that of lane `from`; of itself where there is none. */
template <class T> inline T exchange(T v, int from, int kind) {
    static_assert(sizeof(T) <= 16, "at most 16 bytes");
    Thread *t = machine.now;
    const int parity = t->parity;
    memcpy(warp().slots[parity][lane()].bytes, &v, sizeof v);
    t->parity ^= 1;
    wait(AT_WARP, kind);
    if (from >= 0 && from < warp_lanes()) { memcpy(&v, warp().slots[parity][from].bytes, sizeof v); }
    return v;
}
inline unsigned ballot(bool v, int kind) {
    Thread *t = machine.now;
    const int parity = t->parity;
    unsigned bits = 0;
    warp().slots[parity][lane()].bytes[0] = v;
    t->parity ^= 1;
    wait(AT_WARP, kind);
    for (int i = 0; i < warp_lanes(); i++) { if (warp().slots[parity][i].bytes[0]) { bits |= 1u << i; } }
    return bits;
}
inline void full(unsigned mask) {
    if (mask != 0xffffffffu) { complain("a warp function of a part of a warp, which is not emulated"); leave(); }
}
inline unsigned all_lanes() { return warp_lanes() == 32 ? 0xffffffffu : (1u << warp_lanes()) - 1; }

}  // namespace opd_emu

static const uint3 &threadIdx = opd_emu::machine.thread, &blockIdx = opd_emu::machine.block;
static const dim3 &blockDim = opd_emu::machine.block_dim, &gridDim = opd_emu::machine.grid_dim;
static const int warpSize = 32;

static inline void __syncthreads() { opd_emu::wait(opd_emu::AT_BLOCK, 0); }
static inline void opd_emu_block_vote(int k, int v) {
    opd_emu::wait(opd_emu::AT_BLOCK, 1);          // two waits: the value of the call before is read by then
    if (opd_emu::machine.block_value[0] >= 0) { opd_emu::machine.block_value[0] = -1; opd_emu::machine.block_value[1] = 0; opd_emu::machine.block_value[2] = 0; }
    opd_emu::machine.block_value[1] += v != 0;
    opd_emu::machine.block_value[2]++;
    (void)k;
    opd_emu::wait(opd_emu::AT_BLOCK, 2);
}
static inline int opd_emu_block_count(int v, int *all) {
    int n, total;
    opd_emu_block_vote(0, v);
    n = opd_emu::machine.block_value[1]; total = opd_emu::machine.block_value[2];
    opd_emu::wait(opd_emu::AT_BLOCK, 3);
    opd_emu::machine.block_value[0] = 0;
    *all = n == total;
    return n;
}
static inline int __syncthreads_count(int v) { int all; return opd_emu_block_count(v, &all); }
static inline int __syncthreads_or(int v) { int all; return opd_emu_block_count(v, &all) > 0; }
static inline int __syncthreads_and(int v) { int all; (void)opd_emu_block_count(v, &all); return all; }
static inline void __syncwarp(unsigned mask = 0xffffffffu) { opd_emu::full(mask); opd_emu::wait(opd_emu::AT_WARP, 1); }
template <class T> static inline T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
    const int base = opd_emu::lane() & ~(width - 1);
    opd_emu::full(mask);
    return opd_emu::exchange(v, base + (from & (width - 1)), 2);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
    const int at = opd_emu::lane(), to = at ^ bits;
    opd_emu::full(mask);
    return opd_emu::exchange(v, to / width > at / width ? at : to, 3);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
    const int at = opd_emu::lane(), to = at + (int)by;
    opd_emu::full(mask);
    return opd_emu::exchange(v, to / width != at / width ? at : to, 4);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
    const int at = opd_emu::lane(), to = at - (int)by;
    opd_emu::full(mask);
    return opd_emu::exchange(v, to < (at & ~(width - 1)) ? at : to, 5);
}
static inline unsigned __ballot_sync(unsigned mask, int v) { opd_emu::full(mask); return opd_emu::ballot(v != 0, 6); }
static inline int __any_sync(unsigned mask, int v) { opd_emu::full(mask); return opd_emu::ballot(v != 0, 7) != 0; }
static inline int __all_sync(unsigned mask, int v) {
    opd_emu::full(mask);
    return opd_emu::ballot(v != 0, 8) == opd_emu::all_lanes();
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
[[noreturn]] static inline void __trap() { opd_emu::trap(); }
#define OPD_EMU_SHARED_BYTES() (opd_emu::machine.shared)
static inline unsigned char *opd_cuda_emulated_shared() { return opd_emu::machine.shared; }

//-- device functions ---------------------------------------------------------------------------------------------

template <class T> static inline T __ldg(const T *p) { return *p; }
template <class T> static inline T __ldcs(const T *p) { return *p; }
template <class T> static inline T __ldcg(const T *p) { return *p; }
template <class T> static inline void __stcs(T *p, T v) { *p = v; }
template <class T> static inline void __stcg(T *p, T v) { *p = v; }
template <class T, class U> static inline T atomicAdd(T *p, U v) { T was = *p; *p = (T)(was + (T)v); return was; }
template <class T, class U> static inline T atomicSub(T *p, U v) { T was = *p; *p = (T)(was - (T)v); return was; }
template <class T, class U> static inline T atomicMax(T *p, U v) { T was = *p; if ((T)v > was) { *p = (T)v; } return was; }
template <class T, class U> static inline T atomicMin(T *p, U v) { T was = *p; if ((T)v < was) { *p = (T)v; } return was; }
template <class T, class U> static inline T atomicOr(T *p, U v) { T was = *p; *p = was | (T)v; return was; }
template <class T, class U> static inline T atomicAnd(T *p, U v) { T was = *p; *p = was & (T)v; return was; }
template <class T, class U> static inline T atomicXor(T *p, U v) { T was = *p; *p = was ^ (T)v; return was; }
template <class T, class U> static inline T atomicExch(T *p, U v) { T was = *p; *p = (T)v; return was; }
template <class T, class U, class V> static inline T atomicCAS(T *p, U expected, V v) {
    T was = *p;
    if (was == (T)expected) { *p = (T)v; }
    return was;
}
template <class To, class From> static inline To opd_emu_bits(From v) {
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To r;
    memcpy(&r, &v, sizeof r);
    return r;
}
static inline int __float_as_int(float v) { return opd_emu_bits<int>(v); }
static inline unsigned __float_as_uint(float v) { return opd_emu_bits<unsigned>(v); }
static inline float __int_as_float(int v) { return opd_emu_bits<float>(v); }
static inline float __uint_as_float(unsigned v) { return opd_emu_bits<float>(v); }
static inline long long __double_as_longlong(double v) { return opd_emu_bits<long long>(v); }
static inline double __longlong_as_double(long long v) { return opd_emu_bits<double>(v); }
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
static inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline int __ffsll(long long v) { return __builtin_ffsll(v); }
static inline unsigned __brev(unsigned v) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++) { r |= (v >> i & 1) << (31 - i); }
    return r;
}
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
#define __expf expf                               /* the C library has functions of these names */
#define __logf logf
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
#define OPD_EMU_MIN_MAX(T)                                                                                          \
    static inline T min(T a, T b) { return a < b ? a : b; }                                                         \
    static inline T max(T a, T b) { return a > b ? a : b; }
OPD_EMU_MIN_MAX(int)
OPD_EMU_MIN_MAX(unsigned)
OPD_EMU_MIN_MAX(long)
OPD_EMU_MIN_MAX(unsigned long)
OPD_EMU_MIN_MAX(long long)
OPD_EMU_MIN_MAX(unsigned long long)
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

//-- devices ------------------------------------------------------------------------------------------------------

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
    int major, minor, multiProcessorCount, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, l2CacheSize,
        memoryBusWidth, regsPerBlock, concurrentKernels, unifiedAddressing, integrated;
    int maxThreadsDim[3], maxGridSize[3];
};
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxSharedMemoryPerBlock = 8, cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxThreadsPerMultiProcessor = 39, cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97, cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMemoryPoolsSupported = 115
};
static inline cudaError_t cudaGetDeviceCount(int *n) {
    *n = opd_emu::devices() > 0 ? opd_emu::devices() : 0;
    return *n ? cudaSuccess : opd_emu::note(opd_emu::usable());
}
static inline cudaError_t cudaGetDevice(int *d) { *d = opd_emu::current_device; return opd_emu::note(opd_emu::usable()); }
static inline cudaError_t cudaSetDevice(int d) {
    if (opd_emu::devices() <= 0) { return opd_emu::note(opd_emu::usable()); }
    if (d < 0 || d >= opd_emu::devices()) { return opd_emu::note(cudaErrorInvalidDevice); }
    opd_emu::current_device = d;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int d) {
    if (opd_emu::devices() <= 0) { return opd_emu::note(opd_emu::usable()); }
    if (d < 0 || d >= opd_emu::devices()) { return opd_emu::note(cudaErrorInvalidDevice); }
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "emulation on the CPU");
    p->totalGlobalMem = opd_emu::capacity();
    p->sharedMemPerBlock = 48 << 10; p->sharedMemPerBlockOptin = 227 << 10; p->sharedMemPerMultiprocessor = 228 << 10;
    p->major = 9; p->multiProcessorCount = 2; p->warpSize = 32; p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = 2048; p->l2CacheSize = 1 << 20; p->regsPerBlock = 65536; p->unifiedAddressing = 1;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024; p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647; p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int d) {
    cudaDeviceProp p;
    const cudaError_t e = cudaGetDeviceProperties(&p, d);
    if (e != cudaSuccess) { return e; }
    switch (a) {
        case cudaDevAttrMaxThreadsPerBlock: *v = 1024; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: *v = 48 << 10; break;
        case cudaDevAttrWarpSize: *v = 32; break;
        case cudaDevAttrMultiProcessorCount: *v = p.multiProcessorCount; break;
        case cudaDevAttrMaxThreadsPerMultiProcessor: *v = 2048; break;
        case cudaDevAttrComputeCapabilityMajor: *v = 9; break;
        case cudaDevAttrComputeCapabilityMinor: *v = 0; break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = 227 << 10; break;
        case cudaDevAttrL2CacheSize: *v = p.l2CacheSize; break;
        case cudaDevAttrMemoryPoolsSupported: *v = 0; break;
    }
    return cudaSuccess;
}
static inline cudaError_t cudaDriverGetVersion(int *v) { *v = opd_emu::devices() < 0 ? 0 : 13000; return cudaSuccess; }
static inline cudaError_t cudaRuntimeGetVersion(int *v) { *v = 13000; return cudaSuccess; }
static inline cudaError_t cudaGetLastError() {
    const cudaError_t e = opd_emu::last_error;
    opd_emu::last_error = opd_emu::machine.sticky;
    return e;
}
static inline cudaError_t cudaPeekAtLastError() { return opd_emu::last_error; }
static inline cudaError_t cudaDeviceSynchronize() { return opd_emu::uncaptured(); }
static inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
static inline cudaError_t cudaDeviceCanAccessPeer(int *v, int a, int b) { *v = a != b; return cudaSuccess; }
static inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
static inline cudaError_t cudaFree(void *p);

//-- memory -------------------------------------------------------------------------------------------------------

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault
};
static inline cudaError_t cudaMalloc(void **p, size_t bytes) {
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    const size_t whole = (bytes + 511) & ~(size_t)511;
    *p = NULL;
    if (!opd_emu::relaxed && opd_emu::uncaptured() != cudaSuccess) { return opd_emu::last_error; }
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    if (bytes == 0) { return cudaSuccess; }
    if (whole > opd_emu::capacity() - std::min(opd_emu::capacity(), opd_emu::machine.used[opd_emu::current_device])) {
        return opd_emu::note(cudaErrorMemoryAllocation);
    }
#if defined(OPD_EMU_ASAN)
    char *at = opd_emu::region_take((bytes + 255) & ~(size_t)255);
#else
    char *at = opd_emu::region_take(whole);
#endif
    if (!at) { return opd_emu::note(cudaErrorMemoryAllocation); }
    opd_emu::machine.blocks[at] = std::make_pair(bytes, opd_emu::current_device);
    opd_emu::machine.used[opd_emu::current_device] += whole;
    { opd_emu::Open open; memset(at, 0xcd, bytes); }
    *p = at;
    return cudaSuccess;
}
template <class T> static inline cudaError_t cudaMalloc(T **p, size_t bytes) { return cudaMalloc((void **)p, bytes); }
static inline cudaError_t cudaFree(void *p) {
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (!p) { return opd_emu::devices() > 0 ? cudaSuccess : opd_emu::note(opd_emu::usable()); }
    auto at = opd_emu::machine.blocks.find((char *)p);
    if (at == opd_emu::machine.blocks.end()) { return opd_emu::note(cudaErrorInvalidValue); }
    const size_t whole = (at->second.first + 511) & ~(size_t)511;
    opd_emu::machine.used[at->second.second] -= whole;
    opd_emu::region_give(at->first, whole);
    opd_emu::machine.blocks.erase(at);
    return cudaSuccess;
}
static inline cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
    *all = opd_emu::capacity();
    *left = *all - std::min(*all, opd_emu::machine.used[opd_emu::current_device]);
    return opd_emu::note(opd_emu::usable());
}
#define cudaHostAllocDefault 0
#define cudaHostAllocPortable 1
static inline cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned) {
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    *p = malloc(bytes ? bytes : 1);
    return *p ? cudaSuccess : opd_emu::note(cudaErrorMemoryAllocation);
}
static inline cudaError_t cudaMallocHost(void **p, size_t bytes) { return cudaHostAlloc(p, bytes, 0); }
static inline cudaError_t cudaFreeHost(void *p) { free(p); return cudaSuccess; }
static inline cudaError_t opd_emu_copy_now(void *to, const void *from, size_t bytes) {
    opd_emu::Open open;
    if (!opd_emu::inside(to, bytes) || !opd_emu::inside(from, bytes)) { return cudaErrorInvalidValue; }
    if (bytes) { memmove(to, from, bytes); }
    return cudaSuccess;
}
typedef struct opd_emu_stream *cudaStream_t;
typedef struct opd_emu_event *cudaEvent_t;
typedef struct opd_emu_graph *cudaGraph_t;
typedef struct opd_emu_graph_exec *cudaGraphExec_t;
#define cudaStreamLegacy ((cudaStream_t)1)
#define cudaStreamPerThread ((cudaStream_t)2)
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t s = NULL) {
    return opd_emu::queue(s, [=] { return opd_emu_copy_now(to, from, bytes); });
}
static inline cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes, cudaStream_t s = NULL) {
    return opd_emu::queue(s, [=] { return opd_emu_copy_now(to, from, bytes); });
}
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
    if (opd_emu::uncaptured() != cudaSuccess) { return opd_emu::last_error; }
    return opd_emu::note(opd_emu_copy_now(to, from, bytes));
}
static inline cudaError_t cudaMemsetAsync(void *to, int v, size_t bytes, cudaStream_t s = NULL) {
    return opd_emu::queue(s, [=] {
        opd_emu::Open open;
        if (!opd_emu::inside(to, bytes)) { return cudaErrorInvalidValue; }
        if (bytes) { memset(to, v, bytes); }
        return cudaSuccess;
    });
}
static inline cudaError_t cudaMemset(void *to, int v, size_t bytes) { return cudaMemsetAsync(to, v, bytes, NULL); }
template <class T> static inline cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                                                cudaMemcpyKind = cudaMemcpyHostToDevice) {
    memcpy((char *)&symbol + offset, from, bytes);
    return cudaSuccess;
}
template <class T> static inline cudaError_t cudaGetSymbolAddress(void **p, T &symbol) { *p = (void *)&symbol; return cudaSuccess; }
template <class T> static inline cudaError_t cudaMemcpyFromSymbol(void *to, T &symbol, size_t bytes, size_t offset = 0,
                                                                  cudaMemcpyKind = cudaMemcpyDeviceToHost) {
    memcpy(to, (const char *)&symbol + offset, bytes);
    return cudaSuccess;
}
enum cudaMemoryType { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes { cudaMemoryType type; int device; void *devicePointer, *hostPointer; };
static inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p) {
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    auto at = opd_emu::block_of(p);
    const bool device = at != opd_emu::machine.blocks.end();
    a->type = device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    a->device = device ? at->second.second : -1;
    a->devicePointer = device ? (void *)p : NULL;
    a->hostPointer = device ? NULL : (void *)p;
    return cudaSuccess;
}

//-- streams, events, graphs --------------------------------------------------------------------------------------

#define cudaStreamDefault 0
#define cudaStreamNonBlocking 1
#define cudaEventDefault 0
#define cudaEventBlockingSync 1
#define cudaEventDisableTiming 2
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal = 0, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive, cudaStreamCaptureStatusInvalidated
};
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) {
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    opd_emu::Stream *made = new opd_emu::Stream();
    made->device = opd_emu::current_device;
    *s = (cudaStream_t)made;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreate(cudaStream_t *s) { return cudaStreamCreateWithFlags(s, 0); }
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned f, int) { return cudaStreamCreateWithFlags(s, f); }
static inline cudaError_t cudaStreamDestroy(cudaStream_t s) {
    if ((uintptr_t)s > 2) { delete (opd_emu::Stream *)s; }
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    return opd_emu::stream_of(s)->capture ? opd_emu::note(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}
static inline cudaError_t cudaStreamQuery(cudaStream_t s) { return cudaStreamSynchronize(s); }
static inline cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
    opd_emu::Stream *stream = opd_emu::stream_of(s);
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    if ((uintptr_t)s <= 1 || stream->capture) { return opd_emu::note(cudaErrorStreamCaptureUnsupported); }
    stream->capture = new opd_emu::Graph();
    opd_emu::relaxed = mode == cudaStreamCaptureModeRelaxed;    /* memory may be made meanwhile */
    stream->foreign = false;
    opd_emu::capturing.push_back(stream);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) {
    opd_emu::Stream *stream = opd_emu::stream_of(s);
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    *g = NULL;
    if (!stream->capture || stream->foreign) { return opd_emu::note(cudaErrorStreamCaptureUnmatched); }
    *g = (cudaGraph_t)stream->capture;
    for (opd_emu::Stream *other : opd_emu::capturing) { if (other->capture == (opd_emu::Graph *)*g) { other->capture = NULL; } }
    std::vector<opd_emu::Stream *> left;
    for (opd_emu::Stream *other : opd_emu::capturing) { if (other->capture) { left.push_back(other); } }
    opd_emu::capturing.swap(left);
    return opd_emu::note(opd_emu::machine.sticky);
}
static inline cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status) {
    *status = opd_emu::stream_of(s)->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) {
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    *e = (cudaEvent_t) new opd_emu::Event();
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }
static inline cudaError_t cudaEventDestroy(cudaEvent_t e) { delete (opd_emu::Event *)e; return cudaSuccess; }
static inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s = NULL) {
    opd_emu::Event *event = (opd_emu::Event *)e;
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    event->at = opd_emu::clock_ms();
    event->recorded = true;
    event->in_capture = opd_emu::stream_of(s)->capture ? opd_emu::stream_of(s) : NULL;
    return cudaSuccess;
}
/* A stream that waits for what is captured is captured, too. */
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned = 0) {
    opd_emu::Event *event = (opd_emu::Event *)e;
    opd_emu::Stream *stream = opd_emu::stream_of(s);
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    if (event->in_capture && event->in_capture->capture && !stream->capture) {
        stream->capture = event->in_capture->capture;
        stream->foreign = true;
        opd_emu::capturing.push_back(stream);
    }
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    opd_emu::Event *event = (opd_emu::Event *)e;
    if (event->in_capture && event->in_capture->capture) { return opd_emu::note(cudaErrorStreamCaptureUnsupported); }
    return opd_emu::note(opd_emu::usable());
}
static inline cudaError_t cudaEventQuery(cudaEvent_t e) { return cudaEventSynchronize(e); }
static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
    if (!((opd_emu::Event *)a)->recorded || !((opd_emu::Event *)b)->recorded) { return opd_emu::note(cudaErrorInvalidResourceHandle); }
    *ms = (float)(((opd_emu::Event *)b)->at - ((opd_emu::Event *)a)->at);
    return cudaSuccess;
}
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long = 0) {
    *x = (cudaGraphExec_t) new opd_emu::Graph(*(opd_emu::Graph *)g);
    return cudaSuccess;
}
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) {
    opd_emu::Graph *graph = (opd_emu::Graph *)x;
    return opd_emu::queue(s, [=] {
        for (const auto &work : graph->work) { const cudaError_t e = work(); if (e != cudaSuccess) { return e; } }
        return cudaSuccess;
    });
}
static inline cudaError_t cudaGraphGetNodes(cudaGraph_t g, void *, size_t *n) { *n = ((opd_emu::Graph *)g)->work.size(); return cudaSuccess; }
static inline cudaError_t cudaGraphDestroy(cudaGraph_t g) { delete (opd_emu::Graph *)g; return cudaSuccess; }
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) { delete (opd_emu::Graph *)x; return cudaSuccess; }
static inline cudaError_t cudaLaunchHostFunc(cudaStream_t s, void (*f)(void *), void *user) {
    return opd_emu::queue(s, [=] { f(user); return cudaSuccess; });
}

//-- launches -----------------------------------------------------------------------------------------------------

struct cudaLaunchAttribute { int id; };
typedef struct cudaLaunchConfig_st {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
template <class F> static inline cudaError_t cudaFuncSetAttribute(F f, cudaFuncAttribute a, int v) {
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (a == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (v > 227 << 10) { return opd_emu::note(cudaErrorInvalidValue); }
        opd_emu::machine.dynamic_limit[(const void *)f] = (size_t)v;
    }
    return cudaSuccess;
}
template <class F> static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, F, int, size_t) {
    *n = 2;
    return cudaSuccess;
}
template <class... P, class... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *c, void (*kernel)(P...), A &&...args) {
    static_assert((sizeof(P) + ... + 0) <= 4096, "4 KiB of arguments");
    const dim3 grid = c->gridDim, block = c->blockDim;
    const size_t shared = c->dynamicSmemBytes, n = (size_t)block.x * block.y * block.z;
    std::tuple<P...> kept(static_cast<P>(args)...);
    size_t limit = 48 << 10;
    {
        std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
        auto more = opd_emu::machine.dynamic_limit.find((const void *)kernel);
        if (more != opd_emu::machine.dynamic_limit.end()) { limit = more->second; }
    }
    if (n == 0 || n > 1024 || block.z > 64 || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 2147483647u ||
        grid.y > 65535 || grid.z > 65535) {
        return opd_emu::note(cudaErrorInvalidConfiguration);
    }
    if (shared > limit) { return opd_emu::note(cudaErrorInvalidValue); }
    return opd_emu::queue(c->stream, [=] {
        return opd_emu::launch_now(grid, block, shared, [&] { std::apply(kernel, kept); });
    });
}

/* kernel<<<grid, block, shared, stream>>>(arguments) is written opd_emu_call(kernel, grid, block, shared, stream)(...). */
template <class... P> struct opd_emu_call_of {
    cudaLaunchConfig_t config;
    void (*kernel)(P...);
    template <class... A> void operator()(A &&...args) const { (void)cudaLaunchKernelEx(&config, kernel, std::forward<A>(args)...); }
};
template <class... P>
static inline opd_emu_call_of<P...> opd_emu_call(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = NULL) {
    opd_emu_call_of<P...> call = {cudaLaunchConfig_t(), kernel};
    call.config.gridDim = grid; call.config.blockDim = block;
    call.config.dynamicSmemBytes = shared; call.config.stream = stream;
    return call;
}

#endif
