/* An emulation of the CUDA runtime for machines without a GPU, with the functions that opdispatch_cuda.cu uses.
   Device code is compiled as plain C++17 and runs thread by thread, so its results can be tested on any machine.

     g++ -std=c++17 -Itests/cuda -x c++ -c opdispatch_cuda.cu

   Every thread of a block is a fiber.  Barriers and warp shuffles switch between fibers.  The emulation reports an
   error if threads of a block wait at different barriers.  Blocks run one after the other.  Threads run in ascending
   order in every second launch, and in descending order in the others, so that a missing barrier gives wrong results.
   With OPD_EMU_GUARD=1, device memory cannot be accessed by the host between launches, nor by kernels of another
   device; the address sanitizer checks accesses beyond its ends.  If a kernel traps, every later call fails, as on a
   GPU.

   By default, a stream executes work immediately.  With OPD_EMU_ASYNC=n, work stays queued until the program waits for
   it: by synchronising a stream, an event or the device, by a copy to host memory that is not pinned, by cudaFree,
   or by a query (which executes one piece of work and returns "not ready").  Pieces of work that no stream, event or
   legacy default stream puts in order are executed in the worst order:
       n = 1   all work that can be executed, the youngest stream first
       n = 2   only the work for which the program waits
       n > 2   in random order with seed n, sometimes also when nothing waits
   A copy from pageable memory has read this memory when it returns.  A copy from or to pinned memory reads and
   writes when it is executed; until then, its destination contains a pattern.  Freed memory contains another
   pattern.  While a stream is captured, its work is stored in the graph, which executes it in the same order.

   races.cpp finds races between threads and between blocks, and wrong accesses.  Neither shows memory order, the
   effects of a GPU compiler, or speed.

   Environment: OPD_EMU_DEVICES=2 devices (0: a machine without a device; -1: without a driver; -802: the query fails
                with this error), OPD_EMU_CONTEXT=2: every call that makes or needs a context fails with this error,
                OPD_EMU_PEERS=0: no device can access another one's memory, OPD_EMU_COMPILED=75: the compute capability
                for which the code is compiled (90: with products by warp groups), OPD_EMU_WRONG_GROUPS=1: these products
                are wrong, OPD_EMU_MEMORY=1073741824 bytes per device, OPD_EMU_GUARD, OPD_EMU_ASYNC
                (above), OPD_EMU_FAULT=1: every kernel fails from now on (read at each launch).
                OPD_EMU_ORDER=7: threads of a block and blocks of a launch run in random order with this seed.
                OPD_EMU_TRACE=1: prints a line for each copy to the host, with a hash of the data.  Two orders must
                print the same lines. */
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
#include <dlfcn.h>
#include <algorithm>
#include <deque>
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
/* The build for races.cpp: it is told what the machine does, and sees what all but unseen functions touch. */
#if defined(OPD_EMU_RACES)
#define OPD_EMU_TELL(call) (opd_emu::call)
#define OPD_EMU_UNSEEN __attribute__((no_sanitize("thread"), noinline))
namespace opd_emu {
void races_launch(const void *kernel, size_t shared, size_t blocks);
void races_block(size_t block);                   // one begins
void races_barrier();                             // all threads of the block have passed one
void races_end();                                 // of a launch
void races_made(char *at, size_t bytes);          // device memory, with contents that nobody wrote
void races_freed(char *at, size_t bytes);
void races_host(const void *to, const void *from, size_t bytes);     // written from there; from NULL: by a value
void races_library(const void *p, size_t bytes, bool write);         // a device library touches it
void races_atomic(const void *p, size_t bytes, const void *code);    // a thread does, as one step
unsigned long races_found(const char *kind);      // accesses; NULL: of all kinds
void races_forget();
}
#else
#define OPD_EMU_TELL(call) ((void)0)
#define OPD_EMU_UNSEEN
#endif
/* How fibers are switched: on x86-64 by the compiler's own setjmp and longjmp, which save only a few registers.  The
   address sanitizer replaces longjmp by a function that makes a system call and forgets the limits of all variables on
   the stack.  The thread sanitizer must see each switch, and sees those of the C library. */
#if defined(OPD_EMU_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define OPD_EMU_SWITCHES __attribute__((no_sanitize("address"), noinline))
#elif defined(OPD_EMU_RACES)
#define OPD_EMU_SWITCHES OPD_EMU_UNSEEN
#else
#define OPD_EMU_SWITCHES __attribute__((noinline))
#endif
#if defined(OPD_EMU_ASAN) || (defined(__x86_64__) && !defined(OPD_EMU_RACES))
#define OPD_EMU_MARK(at) __builtin_setjmp((void **)(void *)(at))
#define OPD_EMU_GO_TO(at) __builtin_longjmp((void **)(void *)(at), 1)
#else
#define OPD_EMU_MARK(at) _setjmp(at)
#define OPD_EMU_GO_TO(at) _longjmp(at, 1)
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
    X(cudaErrorDevicesUnavailable, 46, "CUDA-capable device(s) is/are busy or unavailable")                         \
    X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")              \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                                 \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                                        \
    X(cudaErrorNoKernelImageForDevice, 209, "no kernel image is available for execution on the device")             \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                               \
    X(cudaErrorNotReady, 600, "device not ready")                                                                   \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                                     \
    X(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                                     \
    X(cudaErrorAssert, 710, "device-side assert triggered") X(cudaErrorLaunchFailure, 719, "unspecified launch failure") \
    X(cudaErrorSystemNotReady, 802, "system not yet initialized") X(cudaErrorNotSupported, 801, "operation not supported") \
                                                         \
    X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")                   \
    X(cudaErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture")            \
    X(cudaErrorStreamCaptureUnmatched, 903, "the capture was not initiated in this stream")                         \
    X(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                                    \
    X(cudaErrorStreamCaptureIsolation, 905, "dependency created on uncaptured work in another stream")              \
    X(cudaErrorStreamCaptureImplicit, 906, "operation would make the legacy stream depend on a capturing blocking stream") \
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
//  Made with makecontext, switched with OPD_EMU_MARK and OPD_EMU_GO_TO, which make no system call.

namespace opd_emu {

#if defined(OPD_EMU_ASAN) || defined(OPD_EMU_RACES)
const size_t STACK = 1 << 19;
#else
const size_t STACK = 1 << 16;
#endif
#if defined(OPD_EMU_RACES)
const size_t GAP = 512;                           // between two allocations: belongs to none
#else
const size_t GAP = 0;
#endif
enum State { READY, AT_WARP, AT_BLOCK, DONE };
const int SYNCWARP = 1;                           // the kind of barrier that __syncwarp is
struct Slot { alignas(16) unsigned char bytes[16]; };
struct Warp { Slot slots[2][32]; int kind; unsigned syncs; };    // syncs: how often it has passed __syncwarp

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
    bool inside;                                  // the kernel, not what calls it
};

/* A kernel with its arguments: launched(device) returns whether no argument is an address in the memory of another
   device than this one; launched(RUN_THREAD) runs the kernel in the current device thread. */
typedef std::function<bool(int device)> Launched;
const int RUN_THREAD = -1;

struct Machine {
    std::recursive_mutex lock;
    // the block that runs
    uint3 thread, block;
    dim3 block_dim, grid_dim;
    Thread *now;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    std::vector<size_t> order, block_order;       // of threads, of blocks, where they are of chance
    std::vector<Fiber *> idle;
    std::vector<std::unique_ptr<Fiber>> fibers;
    Launched body;
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
    std::map<char *, size_t> pinned;              // memory of the host
    size_t used[16];
    char *region; size_t region_bytes;            // a part for each device
    int open[16];                                 // a device's memory can be touched while this is not 0
    bool peers[16][16];
    Machine() : now(NULL), shared(NULL), running(false), stopped(false), launches(0), sticky(cudaSuccess), used(),
        region(NULL), region_bytes(0), open(), peers() { fake = NULL; stack_bottom = NULL; stack_size = 0; }
};
inline Machine machine;
inline thread_local cudaError_t last_error = cudaSuccess;
inline thread_local int current_device = 0;

inline long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}
inline int devices() { static const int n = (int)setting("OPD_EMU_DEVICES", 2); return n > 16 ? 16 : n; }
OPD_EMU_UNSEEN inline long compiled() { static const long n = setting("OPD_EMU_COMPILED", 90); return n; }
OPD_EMU_UNSEEN inline bool wrong_groups() { static const long n = setting("OPD_EMU_WRONG_GROUPS", 0); return n != 0; }
/* What tests ask for by opd_emu_count, and what is called while CUDA makes memory or waits, by opd_emu_hook_set. */
struct Counts { long contexts, direct, staged, handles, destroyed, pinned, libraries, launches, calls, products, megaflops; };
inline Counts counts;
inline void (*hook)(const char *call);
/* OPD_EMU_COUNT=1: kernels, products and memset are only counted, not run, so that models of full size can be counted. */
OPD_EMU_UNSEEN inline bool only_counts() { static const bool only = setting("OPD_EMU_COUNT", 0) != 0; return only; }
inline void count_product(double m, double n, double k, double batch) {
    static thread_local double rest;
    rest += 2e-6 * m * n * k * batch;
    counts.products++; counts.megaflops += (long)rest; rest -= (double)(long)rest;
}
inline cudaError_t note(cudaError_t e) { if (e != cudaSuccess) { last_error = e; } return e; }
/* What every call asks first; all but a few make a context where there is none. */
inline cudaError_t usable(bool context = true) {
    static const cudaError_t broken = (cudaError_t)setting("OPD_EMU_CONTEXT", 0);
    counts.calls++;
    if (devices() < 0) { return devices() == -1 ? cudaErrorInsufficientDriver : (cudaError_t)-devices(); }
    if (devices() == 0) { return cudaErrorNoDevice; }
    if (context) { counts.contexts++; }
    if (context && broken != cudaSuccess) { return broken; }
    return machine.sticky;
}
/* Without the machine's lock: what another thread does meanwhile is not held up. */
inline void meanwhile(const char *call) { if (hook) { hook(call); } }

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
OPD_EMU_SWITCHES inline void leave() {
    Fiber *f = machine.now->fiber;
    if (OPD_EMU_MARK(f->at) == 0) {
        switch_begin(&f->fake, machine.stack_bottom, machine.stack_size);
        OPD_EMU_GO_TO(machine.scheduler);
    }
    switch_end(f->fake, &machine.stack_bottom, &machine.stack_size);
}
/* A fiber runs one thread after another, each for as long as it likes. */
OPD_EMU_UNSEEN inline void fiber_main() {
    switch_end(NULL, &machine.stack_bottom, &machine.stack_size);
    for (;;) {
        machine.body(RUN_THREAD);
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
OPD_EMU_SWITCHES inline void enter(Thread *t) {
    machine.now = t;
    machine.thread = t->index;
    if (!t->fiber) { t->fiber = fiber_get(); }
    Fiber *f = t->fiber;
    if (OPD_EMU_MARK(machine.scheduler) == 0) {
        switch_begin(&machine.fake, f->stack, STACK);
        if (f->begun) { OPD_EMU_GO_TO(f->at); }
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

OPD_EMU_UNSEEN inline void wait(State state, int kind) {
    machine.now->state = state;
    machine.now->kind = kind;
    leave();
}
OPD_EMU_UNSEEN inline void complain(const char *what) {
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
    if (waiting && state == AT_BLOCK) { OPD_EMU_TELL(races_barrier()); }
    if (waiting && state == AT_WARP && kind == SYNCWARP) { machine.warps[from / 32].syncs++; }
    return waiting > 0;
}
/* Numbers of chance for orders, the same for the same seed; 0: none are wanted. */
inline long order_seed() { static const long seed = setting("OPD_EMU_ORDER", 0); return seed; }
inline uint64_t mixed(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
/* Where a seed begins lies far from where others do: one stream a few numbers further on would fall in with it. */
inline size_t chance(size_t below) {
    static uint64_t x = mixed((uint64_t)order_seed());
    return (size_t)(mixed(x += 0x9e3779b97f4a7c15u) % below);
}
inline void shuffle(std::vector<size_t> &order, size_t n) {
    if (order.size() != n) { order.resize(n); for (size_t k = 0; k < n; k++) { order[k] = k; } }
    for (size_t k = n; k > 1; k--) { std::swap(order[k - 1], order[chance(k)]); }
}
inline void run_block(bool falling) {
    const size_t n = machine.threads.size();
    bool rest = false;                            // some warps rest while others go on
    for (;;) {
        bool moved = false, alive = false;
        uint32_t resting = 0;
        if (order_seed()) {
            shuffle(machine.order, n);
            resting = rest ? (uint32_t)chance((size_t)1 << 32) : 0;
        }
        for (size_t k = 0; k < n && !machine.stopped; k++) {
            Thread &t = machine.threads[order_seed() ? machine.order[k] : falling ? n - 1 - k : k];
            if (t.state == READY && !(resting >> ((&t - machine.threads.data()) / 32) & 1)) { enter(&t); moved = true; }
        }
        if (machine.stopped) { break; }
        for (size_t w = 0; w < n; w += 32) { if (release(AT_WARP, w, std::min(w + 32, n))) { moved = true; } }
        rest = moved || !resting;
        if (!rest) { continue; }
        if (!moved && release(AT_BLOCK, 0, n)) { moved = true; }
        for (size_t k = 0; k < n; k++) { alive = alive || machine.threads[k].state != DONE; }
        if (!alive) { return; }
        if (!moved && !machine.stopped) { complain("some of its threads wait at a barrier that others never reach"); }
    }
    for (size_t k = 0; k < n; k++) {              // what is on the stacks of a stopped block is given up
        Fiber *f = machine.threads[k].fiber;
        if (!f) { continue; }
        f->begun = false;
        machine.idle.push_back(f);
#if defined(OPD_EMU_ASAN)
        __asan_unpoison_memory_region(f->stack, STACK);
#endif
    }
}
[[noreturn]] OPD_EMU_UNSEEN inline void trap() {
    machine.sticky = cudaErrorAssert;
    machine.stopped = true;
    leave();
    abort();
}

//-- memory -------------------------------------------------------------------------------------------------------

inline bool guarded() { static const bool on = setting("OPD_EMU_GUARD", 0) != 0; return on; }
inline size_t capacity() { static const size_t n = (size_t)setting("OPD_EMU_MEMORY", 1L << 30); return n; }
inline size_t part() { return ((capacity() + 4095) / 4096 * 4096 + (1 << 20)) * (GAP ? 2 : 1); }        /* of a device in the region */
inline void part_protect(int device, int how) {
    if (machine.region && guarded()) { mprotect(machine.region + (size_t)device * part(), part(), how); }
}
/* While it lives, memory of a device can be touched; -1: of all. */
struct Open {
    const int from, to;
    Open(int device = -1) : from(device < 0 ? 0 : device), to(device < 0 ? devices() : device + 1) {
        machine.lock.lock();
        for (int d = from; d < to; d++) { if (machine.open[d]++ == 0) { part_protect(d, PROT_READ | PROT_WRITE); } }
    }
    ~Open() {
        for (int d = from; d < to; d++) { if (--machine.open[d] == 0) { part_protect(d, PROT_NONE); } }
        machine.lock.unlock();
    }
};

inline char *region_take(size_t bytes, int device) {
#if defined(OPD_EMU_ASAN)
    (void)device;
    return (char *)aligned_alloc(256, bytes);
#else
    if (!machine.region) {
        machine.region_bytes = part() * (size_t)(devices() > 0 ? devices() : 1);
        machine.region = (char *)mmap(NULL, machine.region_bytes, guarded() ? PROT_NONE : PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (machine.region == MAP_FAILED) { machine.region = NULL; return NULL; }
        for (int d = 0; d < devices(); d++) {
            machine.holes[machine.region + (size_t)d * part()] = part() - 4096;           /* never joined to the next */
            if (machine.open[d]) { part_protect(d, PROT_READ | PROT_WRITE); }
        }
    }
    char *const begin = machine.region + (size_t)device * part();
    for (auto hole = machine.holes.lower_bound(begin); hole != machine.holes.end() && hole->first < begin + part(); ++hole) {
        char *at = hole->first;
        const size_t size = hole->second;
        if (size < bytes) { continue; }
        machine.holes.erase(hole);
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
/* With OPD_EMU_TRACE, what comes back to the host. */
inline void trace(const void *to, const void *from, size_t bytes) {
    static const bool on = setting("OPD_EMU_TRACE", 0) != 0;
    uint64_t hash = 0xcbf29ce484222325u;
    if (!on || block_of(from) == machine.blocks.end() || block_of(to) != machine.blocks.end()) { return; }
    for (size_t i = 0; i < bytes; i++) { hash = (hash ^ ((const unsigned char *)from)[i]) * 0x100000001b3u; }
    printf("    copied %zu bytes: %016llx\n", bytes, (unsigned long long)hash);
}

//-- streams, events, graphs --------------------------------------------------------------------------------------

//
//  What a stream has been given to do waits in its lane, each piece with what it waits for; a ticket is the place behind
//  a piece.

typedef std::function<cudaError_t()> Piece;
struct Lane;
struct Ticket { std::shared_ptr<Lane> lane; unsigned long n; };      // the first n pieces of a lane
/* step: says whether it can be done now; it waits for another process or thread, as kernels of NCCL do. */
struct Work { Piece run; std::vector<Ticket> after; const char *reads; size_t bytes; std::function<bool()> step; };
struct Lane { int device; bool blocking; std::deque<Work> work; unsigned long queued, done; };
struct Graph { std::shared_ptr<std::vector<Piece>> work; unsigned long long id; bool broken; };
/* What tests/cuda/nccl.cpp, a library that is loaded, finds at the beginning of a stream: queues what is done when `step`
   says so, again and again; -1 without OPD_EMU_ASYNC, and where the stream is captured. */
struct Hooks { int (*until)(void *stream, int (*step)(void *arg), void *arg); };
inline int queue_until(void *s, int (*step)(void *arg), void *arg);
inline const Hooks hooks = {queue_until};
struct Stream {
    const Hooks *hooks_of = &hooks;
    int device; bool blocking;
    std::shared_ptr<Lane> lane;
    Graph *capture; bool foreign;                 // captured with another one
    unsigned long captured, joined;               // pieces while captured, and how many of them others wait for
};
struct Record { Ticket at; double time; };
struct Event { int device; std::shared_ptr<Record> last; Stream *in_capture; unsigned long captured; };
inline double clock_ms() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
inline std::vector<Stream *> capturing;
inline std::vector<std::shared_ptr<Lane>> lanes;  // in the order they were made
inline long async() { static const long n = setting("OPD_EMU_ASYNC", 0); return n; }
inline std::shared_ptr<Lane> lane_new(int device, bool blocking) {
    lanes.push_back(std::make_shared<Lane>(Lane{device, blocking, {}, 0, 0}));
    return lanes.back();
}
inline Stream *legacy() {
    static Stream streams[16];
    Stream *s = &streams[current_device & 15];
    std::lock_guard<std::recursive_mutex> guard(machine.lock);
    if (!s->lane) { s->device = current_device; s->blocking = true; s->lane = lane_new(s->device, true); }
    return s;
}
inline bool is_legacy(void *s) { return (uintptr_t)s <= 2; }
inline Stream *stream_of(void *s) { return is_legacy(s) ? legacy() : (Stream *)s; }

inline bool others;                               /* something waits for what this machine does not do by itself */
inline bool past(const Ticket &t) { return !t.lane || t.lane->done >= t.n; }
inline unsigned chance() {
    static uint64_t state = (uint64_t)async();
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33);
}
inline bool can_do(Lane &lane) {
    if (lane.work.empty()) { return false; }
    for (const Ticket &t : lane.work.front().after) { if (!past(t)) { return false; } }
    Work &w = lane.work.front();
    if (w.step && machine.sticky == cudaSuccess && !w.step()) { others = true; return false; }
    w.step = nullptr;
    return true;
}
/* The first piece of a lane.  One that fails is seen by all that comes later. */
inline void lane_step(Lane &lane) {
    Work w = std::move(lane.work.front());
    lane.work.pop_front();
    const cudaError_t e = machine.sticky == cudaSuccess ? w.run() : cudaSuccess;
    if (e != cudaSuccess && machine.sticky == cudaSuccess) { machine.sticky = e; }
    lane.done++;
}
/* One piece on the way to a ticket; false: others have to do something first. */
inline bool step_towards(const Ticket &t) {
    std::vector<Lane *> ready;
    others = false;
    if (async() == 2) {
        Lane *lane = t.lane.get();
        for (bool deeper = true; deeper; ) {
            deeper = false;
            for (const Ticket &before : lane->work.front().after) {
                if (!past(before)) { lane = before.lane.get(); deeper = true; break; }
            }
        }
        if (!can_do(*lane)) { return false; }
        lane_step(*lane);
        return true;
    }
    for (auto &lane : lanes) { if (can_do(*lane)) { ready.push_back(lane.get()); } }
    if (ready.empty() && others) { return false; }
    if (ready.empty()) { fprintf(stderr, "emulated CUDA: streams wait for each other\n"); abort(); }
    lane_step(*(async() == 1 ? ready.back() : ready[chance() % ready.size()]));
    return true;
}
/* Does what a ticket stands for, and what comes in between. */
inline cudaError_t finish(const Ticket &t) {
    for (;;) {
        {
            std::lock_guard<std::recursive_mutex> guard(machine.lock);
            while (!past(t) && step_towards(t)) {}
            if (past(t)) { return machine.sticky; }
        }
        const struct timespec rest = {0, 20000};
        nanosleep(&rest, NULL);
    }
}
inline Ticket end_of(const Stream *s) { return Ticket{s->lane, s->lane->queued}; }
/* All of a device. */
inline cudaError_t finish_device(int device) {
    std::vector<Ticket> ends;
    {
        std::lock_guard<std::recursive_mutex> guard(machine.lock);
        for (auto &lane : lanes) { if (lane->device == device) { ends.push_back(Ticket{lane, lane->queued}); } }
    }
    for (const Ticket &t : ends) { (void)finish(t); }
    ends.clear();
    std::lock_guard<std::recursive_mutex> guard(machine.lock);
    lanes.erase(std::remove_if(lanes.begin(), lanes.end(),
                               [](const std::shared_ptr<Lane> &l) { return l.use_count() == 1 && l->work.empty(); }), lanes.end());
    return machine.sticky;
}
/* What the legacy default stream and those that are not cudaStreamNonBlocking wait for by themselves. */
inline std::vector<Ticket> implied(void *s, const Stream *stream) {
    std::vector<Ticket> after;
    if (is_legacy(s)) {
        for (auto &lane : lanes) {
            if (lane != stream->lane && lane->blocking && lane->device == stream->device) { after.push_back(Ticket{lane, lane->queued}); }
        }
    } else if (stream->blocking) { after.push_back(end_of(legacy())); }
    return after;
}
/* What the host may not do to a stream that is captured: it spoils the capture. */
inline cudaError_t spoiled(Stream *s) { s->capture->broken = true; return note(cudaErrorStreamCaptureUnsupported); }
/* Does the work now, later with OPD_EMU_ASYNC, or keeps it where the stream is captured.  reads: memory of the host. */
inline cudaError_t queue(void *s, const Piece &work, const std::vector<Ticket> &also = {}, const void *reads = NULL, size_t bytes = 0) {
    Stream *stream = stream_of(s);
    if (usable() != cudaSuccess) { return note(usable()); }
    if (stream->capture && stream->capture->broken) { return note(cudaErrorStreamCaptureInvalidated); }
    if (stream->capture) { stream->capture->work->push_back(work); stream->captured++; return cudaSuccess; }
    if (!async()) { return note(work()); }
    std::lock_guard<std::recursive_mutex> guard(machine.lock);
    for (Stream *c : capturing) {
        if (is_legacy(s) && c->blocking && c->device == stream->device) { c->capture->broken = true; return note(cudaErrorStreamCaptureImplicit); }
    }
    Work w = {work, implied(s, stream), (const char *)reads, bytes, nullptr};
    w.after.insert(w.after.end(), also.begin(), also.end());
    stream->lane->work.push_back(w);
    stream->lane->queued++;
    if (async() > 2 && chance() % 4 == 0) { (void)step_towards(end_of(stream)); }
    return note(machine.sticky);
}
inline int queue_until(void *s, int (*step)(void *arg), void *arg) {
    std::lock_guard<std::recursive_mutex> guard(machine.lock);
    Stream *stream = (Stream *)s;
    if (!async() || stream->capture) { return -1; }
    Work w = {[] { return cudaSuccess; }, {}, NULL, 0, [=] { Open open; return step(arg) != 0; }};
    stream->lane->work.push_back(w);
    stream->lane->queued++;
    return 0;
}
/* Whether work that waits will still read this memory of the host. */
inline bool still_read(const char *p, size_t bytes) {
    for (auto &lane : lanes) {
        for (const Work &w : lane->work) { if (w.reads && w.reads < p + bytes && p < w.reads + w.bytes) { return true; } }
    }
    return false;
}
/* What may not be done while anything is captured. */
inline bool relaxed;                              // the mode of the last capture
inline cudaError_t uncaptured(bool spoils = true) {
    std::lock_guard<std::recursive_mutex> guard(machine.lock);
    if (usable() != cudaSuccess) { return note(usable()); }
    bool any = false;
    for (Stream *c : capturing) { if (c->device == current_device) { any = true; if (spoils) { c->capture->broken = true; } } }
    return any ? note(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

inline cudaError_t launch_now(const void *kernel, dim3 grid, dim3 block, size_t shared, int device,
                              const Launched &body) {
    Open open(device);
    const size_t n = (size_t)block.x * block.y * block.z;
    if (machine.running) { fprintf(stderr, "emulated CUDA: a launch inside a kernel\n"); abort(); }
    if (setting("OPD_EMU_FAULT", 0)) { return machine.sticky = cudaErrorLaunchFailure; }
    machine.running = true; machine.stopped = false;
    machine.launches++;
    machine.body = body;
    machine.block_dim = block; machine.grid_dim = grid;
    machine.shared_bytes.resize(shared + 16);
    machine.shared = (unsigned char *)(((uintptr_t)machine.shared_bytes.data() + 15) & ~(uintptr_t)15);
    machine.warps.resize((n + 31) / 32);
    const size_t blocks = (size_t)grid.x * grid.y * grid.z;
    if (order_seed()) { shuffle(machine.block_order, blocks); }
    OPD_EMU_TELL(races_launch(kernel, shared, blocks)); (void)kernel;
    for (size_t k = 0; k < blocks && !machine.stopped; k++) {
        const size_t b = order_seed() ? machine.block_order[k] : k;
        machine.block.x = (unsigned)(b % grid.x);
        machine.block.y = (unsigned)(b / grid.x % grid.y);
        machine.block.z = (unsigned)(b / grid.x / grid.y);
        if (shared) { memset(machine.shared, 0xab, shared); }
        machine.threads.assign(n, Thread());
        for (size_t i = 0; i < n; i++) {
            uint3 at = {(unsigned)(i % block.x), (unsigned)(i / block.x % block.y), (unsigned)(i / block.x / block.y)};
            machine.threads[i].index = at;
        }
        OPD_EMU_TELL(races_block(b));
        run_block(machine.launches % 2 == 0);
    }
    OPD_EMU_TELL(races_end());
    machine.running = false;
    return machine.sticky;
}

//-- exchanges between the threads of a warp ----------------------------------------------------------------------

OPD_EMU_UNSEEN inline int lane() {
    return (int)((machine.thread.x + machine.block_dim.x * (machine.thread.y + machine.block_dim.y * machine.thread.z)) & 31);
}
OPD_EMU_UNSEEN inline Warp &warp() { return machine.warps[(size_t)(machine.now - machine.threads.data()) / 32]; }
OPD_EMU_UNSEEN inline int warp_lanes() {
    const size_t first = (size_t)(machine.now - machine.threads.data()) / 32 * 32;
    return (int)std::min<size_t>(32, machine.threads.size() - first);
}
/* Shows v to the warp, waits for what all of it show, and takes that of lane `from`; of itself where there is none. */
template <class T> OPD_EMU_UNSEEN inline T exchange(T v, int from, int kind) {
    static_assert(sizeof(T) <= 16, "at most 16 bytes");
    Thread *t = machine.now;
    const int parity = t->parity;
    memcpy(warp().slots[parity][lane()].bytes, &v, sizeof v);
    t->parity ^= 1;
    wait(AT_WARP, kind);
    if (from >= 0 && from < warp_lanes()) { memcpy(&v, warp().slots[parity][from].bytes, sizeof v); }
    return v;
}
OPD_EMU_UNSEEN inline unsigned ballot(bool v, int kind) {
    Thread *t = machine.now;
    const int parity = t->parity;
    unsigned bits = 0;
    warp().slots[parity][lane()].bytes[0] = v;
    t->parity ^= 1;
    wait(AT_WARP, kind);
    for (int i = 0; i < warp_lanes(); i++) { if (warp().slots[parity][i].bytes[0]) { bits |= 1u << i; } }
    return bits;
}
OPD_EMU_UNSEEN inline void full(unsigned mask) {
    if (mask != 0xffffffffu) { complain("a warp function of a part of a warp, which is not emulated"); leave(); }
}
OPD_EMU_UNSEEN inline unsigned all_lanes() { return warp_lanes() == 32 ? 0xffffffffu : (1u << warp_lanes()) - 1; }

}  // namespace opd_emu

static const uint3 &threadIdx = opd_emu::machine.thread, &blockIdx = opd_emu::machine.block;
static const dim3 &blockDim = opd_emu::machine.block_dim, &gridDim = opd_emu::machine.grid_dim;
static const int warpSize = 32;

OPD_EMU_UNSEEN static inline void __syncthreads() { opd_emu::wait(opd_emu::AT_BLOCK, 0); }
OPD_EMU_UNSEEN static inline void opd_emu_block_vote(int k, int v) {
    opd_emu::wait(opd_emu::AT_BLOCK, 1);          // two waits: the value of the call before is read by then
    if (opd_emu::machine.block_value[0] >= 0) { opd_emu::machine.block_value[0] = -1; opd_emu::machine.block_value[1] = 0; opd_emu::machine.block_value[2] = 0; }
    opd_emu::machine.block_value[1] += v != 0;
    opd_emu::machine.block_value[2]++;
    (void)k;
    opd_emu::wait(opd_emu::AT_BLOCK, 2);
}
OPD_EMU_UNSEEN static inline int opd_emu_block_count(int v, int *all) {
    int n, total;
    opd_emu_block_vote(0, v);
    n = opd_emu::machine.block_value[1]; total = opd_emu::machine.block_value[2];
    opd_emu::wait(opd_emu::AT_BLOCK, 3);
    opd_emu::machine.block_value[0] = 0;
    *all = n == total;
    return n;
}
OPD_EMU_UNSEEN static inline int __syncthreads_count(int v) { int all; return opd_emu_block_count(v, &all); }
OPD_EMU_UNSEEN static inline int __syncthreads_or(int v) { int all; return opd_emu_block_count(v, &all) > 0; }
OPD_EMU_UNSEEN static inline int __syncthreads_and(int v) { int all; (void)opd_emu_block_count(v, &all); return all; }
OPD_EMU_UNSEEN static inline void __syncwarp(unsigned mask = 0xffffffffu) { opd_emu::full(mask); opd_emu::wait(opd_emu::AT_WARP, opd_emu::SYNCWARP); }
template <class T> OPD_EMU_UNSEEN static inline T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
    const int base = opd_emu::lane() & ~(width - 1);
    opd_emu::full(mask);
    return opd_emu::exchange(v, base + (from & (width - 1)), 2);
}
template <class T> OPD_EMU_UNSEEN static inline T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
    const int at = opd_emu::lane(), to = at ^ bits;
    opd_emu::full(mask);
    return opd_emu::exchange(v, to / width > at / width ? at : to, 3);
}
template <class T> OPD_EMU_UNSEEN static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
    const int at = opd_emu::lane(), to = at + (int)by;
    opd_emu::full(mask);
    return opd_emu::exchange(v, to / width != at / width ? at : to, 4);
}
template <class T> OPD_EMU_UNSEEN static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
    const int at = opd_emu::lane(), to = at - (int)by;
    opd_emu::full(mask);
    return opd_emu::exchange(v, to < (at & ~(width - 1)) ? at : to, 5);
}
OPD_EMU_UNSEEN static inline unsigned __ballot_sync(unsigned mask, int v) { opd_emu::full(mask); return opd_emu::ballot(v != 0, 6); }
OPD_EMU_UNSEEN static inline int __any_sync(unsigned mask, int v) { opd_emu::full(mask); return opd_emu::ballot(v != 0, 7) != 0; }
OPD_EMU_UNSEEN static inline int __all_sync(unsigned mask, int v) {
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
#define OPD_EMU_ATOMIC OPD_EMU_UNSEEN static inline
#define OPD_EMU_STEP(p) OPD_EMU_TELL(races_atomic(p, sizeof *(p), __builtin_return_address(0)))
template <class T, class U> OPD_EMU_ATOMIC T atomicAdd(T *p, U v) { OPD_EMU_STEP(p); T was = *p; *p = (T)(was + (T)v); return was; }
template <class T, class U> OPD_EMU_ATOMIC T atomicSub(T *p, U v) { OPD_EMU_STEP(p); T was = *p; *p = (T)(was - (T)v); return was; }
template <class T, class U> OPD_EMU_ATOMIC T atomicMax(T *p, U v) { OPD_EMU_STEP(p); T was = *p; if ((T)v > was) { *p = (T)v; } return was; }
template <class T, class U> OPD_EMU_ATOMIC T atomicMin(T *p, U v) { OPD_EMU_STEP(p); T was = *p; if ((T)v < was) { *p = (T)v; } return was; }
template <class T, class U> OPD_EMU_ATOMIC T atomicOr(T *p, U v) { OPD_EMU_STEP(p); T was = *p; *p = was | (T)v; return was; }
template <class T, class U> OPD_EMU_ATOMIC T atomicAnd(T *p, U v) { OPD_EMU_STEP(p); T was = *p; *p = was & (T)v; return was; }
template <class T, class U> OPD_EMU_ATOMIC T atomicXor(T *p, U v) { OPD_EMU_STEP(p); T was = *p; *p = was ^ (T)v; return was; }
template <class T, class U> OPD_EMU_ATOMIC T atomicExch(T *p, U v) { OPD_EMU_STEP(p); T was = *p; *p = (T)v; return was; }
template <class T, class U, class V> OPD_EMU_ATOMIC T atomicCAS(T *p, U expected, V v) {
    OPD_EMU_STEP(p);
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
static inline void sincospi(double x, double *s, double *c) { *s = sin(M_PI * x); *c = cos(M_PI * x); }
static inline void sincospif(float x, float *s, float *c) { *s = (float)sin(M_PI * x); *c = (float)cos(M_PI * x); }
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
    return *n ? cudaSuccess : opd_emu::note(opd_emu::usable(false));
}
static inline cudaError_t cudaGetDevice(int *d) { *d = opd_emu::current_device; return opd_emu::note(opd_emu::usable(false)); }
static inline cudaError_t cudaSetDevice(int d) {
    if (opd_emu::devices() <= 0) { return opd_emu::note(opd_emu::usable()); }
    if (d < 0 || d >= opd_emu::devices()) { return opd_emu::note(cudaErrorInvalidDevice); }
    opd_emu::current_device = d;
    return opd_emu::note(opd_emu::usable());
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
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = (int)opd_emu::setting("OPD_EMU_SHARED", 227 << 10); break;
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
static inline cudaError_t cudaDeviceSynchronize() {
    if (opd_emu::uncaptured() != cudaSuccess) { return opd_emu::last_error; }
    return opd_emu::note(opd_emu::finish_device(opd_emu::current_device));
}
static inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
static inline cudaError_t cudaDeviceCanAccessPeer(int *v, int a, int b) {
    *v = a != b && opd_emu::setting("OPD_EMU_PEERS", 1);
    return opd_emu::note(opd_emu::usable(false));
}
/* The current device reaches another one's memory from here on. */
static inline cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned) {
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    bool *peer = &opd_emu::machine.peers[opd_emu::current_device & 15][other & 15];
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    if (other == opd_emu::current_device || !opd_emu::setting("OPD_EMU_PEERS", 1)) { return opd_emu::note(cudaErrorInvalidDevice); }
    if (*peer) { return opd_emu::note(cudaErrorPeerAccessAlreadyEnabled); }
    *peer = true;
    return cudaSuccess;
}
static inline cudaError_t cudaFree(void *p);

//-- memory -------------------------------------------------------------------------------------------------------

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault
};
static inline cudaError_t cudaMalloc(void **p, size_t bytes) {
    opd_emu::meanwhile("cudaMalloc");
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    const size_t whole = (bytes + 511) & ~(size_t)511;
    *p = NULL;
    if (!opd_emu::relaxed && opd_emu::uncaptured(false) != cudaSuccess) { return opd_emu::last_error; }
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    if (bytes == 0) { return cudaSuccess; }
    if (whole > opd_emu::capacity() - std::min(opd_emu::capacity(), opd_emu::machine.used[opd_emu::current_device])) {
        return opd_emu::note(cudaErrorMemoryAllocation);
    }
#if defined(OPD_EMU_ASAN)
    char *at = opd_emu::region_take((bytes + 255) & ~(size_t)255, opd_emu::current_device);
#else
    char *at = opd_emu::region_take(whole + opd_emu::GAP, opd_emu::current_device);
#endif
    if (!at) { return opd_emu::note(cudaErrorMemoryAllocation); }
    opd_emu::machine.blocks[at] = std::make_pair(bytes, opd_emu::current_device);
    opd_emu::machine.used[opd_emu::current_device] += whole;
    if (!opd_emu::only_counts()) { opd_emu::Open open; memset(at, 0xcd, bytes); }
    OPD_EMU_TELL(races_made(at, bytes));
    *p = at;
    return cudaSuccess;
}
template <class T> static inline cudaError_t cudaMalloc(T **p, size_t bytes) { return cudaMalloc((void **)p, bytes); }
static inline cudaError_t cudaFree(void *p) {
    opd_emu::meanwhile("cudaFree");
    std::unique_lock<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (!p) { return opd_emu::devices() > 0 ? cudaSuccess : opd_emu::note(opd_emu::usable()); }
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    if (!opd_emu::relaxed && opd_emu::uncaptured(false) != cudaSuccess) { return opd_emu::last_error; }
    auto at = opd_emu::machine.blocks.find((char *)p);
    if (at == opd_emu::machine.blocks.end()) { return opd_emu::note(cudaErrorInvalidValue); }
    guard.unlock();
    if (opd_emu::finish_device(at->second.second) != cudaSuccess) { return opd_emu::note(opd_emu::machine.sticky); }
    guard.lock();
    if (opd_emu::async()) { opd_emu::Open open; memset(p, 0xdd, at->second.first); }
    const size_t whole = (at->second.first + 511) & ~(size_t)511;
    opd_emu::machine.used[at->second.second] -= whole;
    OPD_EMU_TELL(races_freed(at->first, at->second.first));
    opd_emu::region_give(at->first, whole + opd_emu::GAP);
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
    opd_emu::meanwhile("cudaHostAlloc");
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    *p = malloc(bytes ? bytes : 1);
    if (!*p) { return opd_emu::note(cudaErrorMemoryAllocation); }
    memset(*p, 0xcd, bytes);
    opd_emu::machine.pinned[(char *)*p] = bytes;
    opd_emu::counts.pinned += (long)bytes;
    return cudaSuccess;
}
static inline cudaError_t cudaMallocHost(void **p, size_t bytes) { return cudaHostAlloc(p, bytes, 0); }
/* It waits for nothing, as nobody promises that it does. */
static inline cudaError_t cudaFreeHost(void *p) {
    opd_emu::meanwhile("cudaFreeHost");
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    auto at = opd_emu::machine.pinned.find((char *)p);
    if (p && at == opd_emu::machine.pinned.end()) { return opd_emu::note(cudaErrorInvalidValue); }
    if (p) { opd_emu::counts.pinned -= (long)at->second; opd_emu::machine.pinned.erase(at); }
    free(p);
    return cudaSuccess;
}
namespace opd_emu {
/* Whether [p, p + bytes) lies in pinned memory. */
inline bool pinned(const void *p, size_t bytes) {
    auto at = machine.pinned.upper_bound((char *)p);
    if (at == machine.pinned.begin()) { return false; }
    --at;
    return (const char *)p + bytes <= at->first + at->second;
}
}  // namespace opd_emu
static inline cudaError_t opd_emu_copy_now(void *to, const void *from, size_t bytes) {
    opd_emu::Open open;
    if (!opd_emu::inside(to, bytes) || !opd_emu::inside(from, bytes)) { return cudaErrorInvalidValue; }
    if (bytes) { memmove(to, from, bytes); }
    OPD_EMU_TELL(races_host(to, from, bytes));
    opd_emu::trace(to, from, bytes);
    return cudaSuccess;
}
typedef struct opd_emu_stream *cudaStream_t;
typedef struct opd_emu_event *cudaEvent_t;
typedef struct opd_emu_graph *cudaGraph_t;
typedef struct opd_emu_graph_exec *cudaGraphExec_t;
#define cudaStreamLegacy ((cudaStream_t)1)
#define cudaStreamPerThread ((cudaStream_t)2)
/* What a copy between host and device promises is told in CUDA's "API synchronization behavior". */
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t s = NULL) {
    using namespace opd_emu;
    std::unique_lock<std::recursive_mutex> guard(machine.lock);
    const bool to_host = block_of(to) == machine.blocks.end(), from_host = block_of(from) == machine.blocks.end();
    Stream *stream = stream_of(s);
    cudaError_t e;
    if (!async() || stream->capture || bytes == 0) { return queue(s, [=] { return opd_emu_copy_now(to, from, bytes); }); }
    if (from_host && !pinned(from, bytes)) {      /* read by now */
        auto staged = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
        e = queue(s, [=] { return opd_emu_copy_now(to, staged->data(), bytes); });
    } else {
        e = queue(s, [=] {
            if ((from_host && !pinned(from, bytes)) || (to_host && pinned(to, 0) && !pinned(to, bytes))) {
                fprintf(stderr, "emulated CUDA: the memory of the host that a copy reads was freed before it did\n");
                return cudaErrorIllegalAddress;
            }
            return opd_emu_copy_now(to, from, bytes);
        }, {}, from_host ? from : NULL, bytes);
    }
    if (e == cudaSuccess && to_host && !pinned(to, bytes)) {
        const Ticket end = end_of(stream);
        guard.unlock();
        return note(finish(end));
    }
    if (e == cudaSuccess && to_host && !stream->lane->work.empty() && !still_read((const char *)to, bytes)) { memset(to, 0xa5, bytes); }
    return e;
}
static inline cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t s = NULL) {
    const bool direct = opd_emu::machine.peers[from_device & 15][to_device & 15];
    if (direct) { opd_emu::counts.direct++; } else { opd_emu::counts.staged++; }
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s);
}
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
    using namespace opd_emu;
    if (uncaptured() != cudaSuccess) { return last_error; }
    const bool within = block_of(to) != machine.blocks.end() && block_of(from) != machine.blocks.end();
    const cudaError_t e = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, NULL);
    return e == cudaSuccess && !within ? note(finish(end_of(legacy()))) : e;
}
static inline cudaError_t cudaMemsetAsync(void *to, int v, size_t bytes, cudaStream_t s = NULL) {
    return opd_emu::queue(s, [=] {
        opd_emu::Open open;
        if (!opd_emu::inside(to, bytes)) { return cudaErrorInvalidValue; }
        if (bytes && !opd_emu::only_counts()) { memset(to, v, bytes); }
        OPD_EMU_TELL(races_host(to, NULL, bytes));
        return cudaSuccess;
    });
}
static inline cudaError_t cudaMemset(void *to, int v, size_t bytes) { return cudaMemsetAsync(to, v, bytes, NULL); }
template <class T> static inline cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                                                cudaMemcpyKind = cudaMemcpyHostToDevice) {
    (void)opd_emu::finish_device(opd_emu::current_device);
    memcpy((char *)&symbol + offset, from, bytes);
    return cudaSuccess;
}
template <class T> static inline cudaError_t cudaGetSymbolAddress(void **p, T &symbol) { *p = (void *)&symbol; return cudaSuccess; }
template <class T> static inline cudaError_t cudaMemcpyFromSymbol(void *to, T &symbol, size_t bytes, size_t offset = 0,
                                                                  cudaMemcpyKind = cudaMemcpyDeviceToHost) {
    (void)opd_emu::finish_device(opd_emu::current_device);
    memcpy(to, (const char *)&symbol + offset, bytes);
    return cudaSuccess;
}
enum cudaMemoryType { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes { cudaMemoryType type; int device; void *devicePointer, *hostPointer; };
static inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p) {
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    auto at = opd_emu::block_of(p);
    const bool device = at != opd_emu::machine.blocks.end();
    a->type = device ? cudaMemoryTypeDevice : opd_emu::pinned(p, 1) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
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
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) {
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    opd_emu::Stream *made = new opd_emu::Stream();
    made->device = opd_emu::current_device;
    made->blocking = !(flags & cudaStreamNonBlocking);
    made->lane = opd_emu::lane_new(made->device, made->blocking);
    *s = (cudaStream_t)made;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreate(cudaStream_t *s) { return cudaStreamCreateWithFlags(s, 0); }
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned f, int) { return cudaStreamCreateWithFlags(s, f); }
/* What it was given is still done. */
static inline cudaError_t cudaStreamDestroy(cudaStream_t s) {
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (!opd_emu::is_legacy(s)) { delete (opd_emu::Stream *)s; }
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    opd_emu::Stream *stream = opd_emu::stream_of(s);
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    return stream->capture ? opd_emu::spoiled(stream) : opd_emu::note(opd_emu::finish(opd_emu::end_of(stream)));
}
namespace opd_emu {
/* Whether it is done; one piece is when it is not. */
inline cudaError_t query(const Ticket &t) {
    std::lock_guard<std::recursive_mutex> guard(machine.lock);
    if (usable() != cudaSuccess || past(t)) { return note(usable()); }
    (void)step_towards(t);
    return note(machine.sticky != cudaSuccess ? machine.sticky : cudaErrorNotReady);
}
}  // namespace opd_emu
static inline cudaError_t cudaStreamQuery(cudaStream_t s) {
    opd_emu::Stream *stream = opd_emu::stream_of(s);
    return stream->capture ? opd_emu::spoiled(stream) : opd_emu::query(opd_emu::end_of(stream));
}
static inline cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
    static unsigned long long id;
    opd_emu::Stream *stream = opd_emu::stream_of(s);
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    if ((uintptr_t)s <= 1) { return opd_emu::note(cudaErrorStreamCaptureUnsupported); }
    if (stream->capture) { return opd_emu::note(cudaErrorInvalidValue); }
    stream->capture = new opd_emu::Graph();
    stream->capture->work = std::make_shared<std::vector<opd_emu::Piece>>();
    stream->capture->id = ++id;
    opd_emu::relaxed = mode == cudaStreamCaptureModeRelaxed;    /* memory may be made meanwhile */
    stream->foreign = false;
    opd_emu::capturing.push_back(stream);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) {
    opd_emu::Stream *stream = opd_emu::stream_of(s);
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    opd_emu::Graph *graph = stream->capture;
    std::vector<opd_emu::Stream *> left;
    cudaError_t e = opd_emu::usable();
    *g = NULL;
    if (!graph || stream->foreign) { return opd_emu::note(cudaErrorStreamCaptureUnmatched); }
    if (e == cudaSuccess && graph->broken) { e = cudaErrorStreamCaptureInvalidated; }
    for (opd_emu::Stream *other : opd_emu::capturing) {
        if (other->capture != graph) { left.push_back(other); continue; }
        if (e == cudaSuccess && other->foreign && other->joined < other->captured) { e = cudaErrorStreamCaptureUnjoined; }
        other->capture = NULL;
        other->captured = other->joined = 0;
    }
    opd_emu::capturing.swap(left);
    if (e == cudaSuccess) { *g = (cudaGraph_t)graph; } else { delete graph; }
    return opd_emu::note(e);
}
static inline cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus *status, unsigned long long *id = NULL) {
    const opd_emu::Graph *graph = opd_emu::stream_of(s)->capture;
    *status = !graph ? cudaStreamCaptureStatusNone : graph->broken ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    if (id) { *id = graph ? graph->id : 0; }
    return opd_emu::note(opd_emu::usable());
}
static inline cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status) { return cudaStreamGetCaptureInfo(s, status); }
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) {
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    opd_emu::Event *made = new opd_emu::Event();
    made->device = opd_emu::current_device;
    *e = (cudaEvent_t)made;
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }
static inline cudaError_t cudaEventDestroy(cudaEvent_t e) {
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    delete (opd_emu::Event *)e;
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s = NULL) {
    opd_emu::Event *event = (opd_emu::Event *)e;
    if (!e) { return opd_emu::note(cudaErrorInvalidResourceHandle); }
    opd_emu::Stream *stream = opd_emu::stream_of(s);
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    if (event->device != stream->device) { return opd_emu::note(cudaErrorInvalidResourceHandle); }
    event->in_capture = stream->capture ? stream : NULL;
    event->captured = stream->captured;
    event->last = NULL;
    if (stream->capture) { return cudaSuccess; }
    auto record = std::make_shared<opd_emu::Record>();
    const cudaError_t failed = opd_emu::queue(s, [record] { record->time = opd_emu::clock_ms(); return cudaSuccess; });
    if (opd_emu::async()) { record->at = opd_emu::end_of(stream); }
    event->last = record;
    return failed;
}
/* A stream that waits for what is captured is captured, too. */
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned = 0) {
    opd_emu::Event *event = (opd_emu::Event *)e;
    if (!e) { return opd_emu::note(cudaErrorInvalidResourceHandle); }
    opd_emu::Stream *stream = opd_emu::stream_of(s);
    std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
    if (opd_emu::usable() != cudaSuccess) { return opd_emu::note(opd_emu::usable()); }
    if (event->in_capture && event->in_capture->capture) {
        opd_emu::Stream *other = event->in_capture;
        if (!stream->capture) {
            stream->capture = other->capture;
            stream->foreign = true;
            opd_emu::capturing.push_back(stream);
        } else if (other != stream) { other->joined = std::max(other->joined, event->captured); }
        return cudaSuccess;
    }
    if (!event->last) { return cudaSuccess; }
    if (stream->capture) { stream->capture->broken = true; return opd_emu::note(cudaErrorStreamCaptureIsolation); }
    return opd_emu::queue(s, [] { return cudaSuccess; }, {event->last->at});
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    opd_emu::meanwhile("cudaEventSynchronize");
    opd_emu::Event *event = (opd_emu::Event *)e;
    if (!e) { return opd_emu::note(cudaErrorInvalidResourceHandle); }
    if (event->in_capture && event->in_capture->capture) { return opd_emu::spoiled(event->in_capture); }
    if (opd_emu::usable() != cudaSuccess || !event->last) { return opd_emu::note(opd_emu::usable()); }
    return opd_emu::note(opd_emu::finish(event->last->at));
}
static inline cudaError_t cudaEventQuery(cudaEvent_t e) {
    opd_emu::Event *event = (opd_emu::Event *)e;
    if (!e) { return opd_emu::note(cudaErrorInvalidResourceHandle); }
    if (event->in_capture && event->in_capture->capture) { return opd_emu::spoiled(event->in_capture); }
    return event->last ? opd_emu::query(event->last->at) : opd_emu::note(opd_emu::usable());
}
static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
    opd_emu::Event *from = (opd_emu::Event *)a, *to = (opd_emu::Event *)b;
    if (!from->last || !to->last) { return opd_emu::note(cudaErrorInvalidResourceHandle); }
    if (!opd_emu::past(from->last->at) || !opd_emu::past(to->last->at)) { return opd_emu::note(cudaErrorNotReady); }
    *ms = (float)(to->last->time - from->last->time);
    return cudaSuccess;
}
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long = 0) {
    *x = (cudaGraphExec_t) new opd_emu::Graph(*(opd_emu::Graph *)g);
    return cudaSuccess;
}
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) {
    const auto pieces = ((opd_emu::Graph *)x)->work;
    return opd_emu::queue(s, [=] {
        for (const auto &work : *pieces) { const cudaError_t e = work(); if (e != cudaSuccess) { return e; } }
        return cudaSuccess;
    });
}
static inline cudaError_t cudaGraphGetNodes(cudaGraph_t g, void *, size_t *n) { *n = ((opd_emu::Graph *)g)->work->size(); return cudaSuccess; }
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
    if (a == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        std::lock_guard<std::recursive_mutex> guard(opd_emu::machine.lock);
        if (v > opd_emu::setting("OPD_EMU_SHARED", 227 << 10)) { return opd_emu::note(cudaErrorInvalidValue); }
        opd_emu::machine.dynamic_limit[(const void *)f] = (size_t)v;
    }
    opd_emu::meanwhile("cudaFuncSetAttribute");
    return cudaSuccess;
}
struct cudaFuncAttributes { size_t sharedSizeBytes, constSizeBytes, localSizeBytes; int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion; };
template <class F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, F) {
    *a = cudaFuncAttributes();
    a->ptxVersion = a->binaryVersion = (int)opd_emu::compiled();
    return opd_emu::note(opd_emu::usable());
}
template <class F> static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, F, int, size_t) {
    *n = 2;
    return cudaSuccess;
}
namespace opd_emu {
/* Whether an argument of a kernel is no address in another device's memory. */
template <class T> inline bool reachable(T, int) { return true; }
template <class T> inline bool reachable(T *p, int device) {
    std::lock_guard<std::recursive_mutex> guard(machine.lock);
    auto at = block_of((const void *)p);
    return at == machine.blocks.end() || at->second.second == device;
}
}  // namespace opd_emu
namespace opd_emu {
/* Queues a kernel.  This is not a template, because opdispatch_cuda.cu launches some 500 different kernels, which would
   take a third of the time that it takes to compile. */
inline cudaError_t launch(const cudaLaunchConfig_t *c, const void *kernel, const Launched &launched) {
    const dim3 grid = c->gridDim, block = c->blockDim;
    const size_t shared = c->dynamicSmemBytes, n = (size_t)block.x * block.y * block.z;
    size_t limit = 47 << 10;                      /* of 48 KiB, __shared__ variables may take 1 KiB */
    {
        std::lock_guard<std::recursive_mutex> guard(machine.lock);
        auto more = machine.dynamic_limit.find(kernel);
        if (more != machine.dynamic_limit.end()) { limit = more->second; }
    }
    if (n == 0 || n > 1024 || block.z > 64 || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 2147483647u ||
        grid.y > 65535 || grid.z > 65535) {
        return note(cudaErrorInvalidConfiguration);
    }
    if (shared > limit) { return note(cudaErrorInvalidValue); }
    const int device = stream_of(c->stream)->device;
    if (device != current_device) { return note(cudaErrorInvalidResourceHandle); }
    if (!launched(device)) {
        fprintf(stderr, "emulated CUDA: a kernel on device %d gets memory of another one\n", device);
        return note(machine.sticky = cudaErrorIllegalAddress);
    }
    counts.launches++;
    if (only_counts()) { return note(usable()); }
    return queue(c->stream, [=] { return launch_now(kernel, grid, block, shared, device, launched); });
}
template <class... P>
static inline cudaError_t launch_exactly(const cudaLaunchConfig_t *c, void (*kernel)(P...), P... args) {
    static_assert((sizeof(P) + ... + 0) <= 32764, "32,764 bytes of arguments");
    return launch(c, (const void *)kernel, [=](int device) OPD_EMU_UNSEEN -> bool {
        if (device != RUN_THREAD) { return (true && ... && reachable(args, device)); }
        machine.now->inside = true;
        kernel(args...);
        machine.now->inside = false;
        return true;
    });
}
}  // namespace opd_emu
template <class... P, class... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *c, void (*kernel)(P...), A &&...args) {
    return opd_emu::launch_exactly<P...>(c, kernel, static_cast<P>(args)...);
}

/* Kernels that tests/cuda/nvrtc.cpp has compiled: the code is the path of a library.  All arguments are pointers. */
struct opd_emu_library { void *handle; };
typedef opd_emu_library *cudaLibrary_t;
typedef void *cudaKernel_t;
enum cudaJitOption { cudaJitMaxRegisters };
enum cudaLibraryOption { cudaLibraryHostUniversalFunctionAndDataTable };
namespace opd_emu {
inline void library_barrier() { wait(AT_BLOCK, 0); }
inline uint64_t library_exchange(uint64_t v, int mask) { return exchange(v, lane() ^ mask, 7); }
inline unsigned library_place(int which) {
    return which == 0 ? machine.thread.x : which == 1 ? machine.block.x : which == 2 ? machine.block_dim.x : machine.grid_dim.x;
}
template <size_t... I> inline void library_call(void *kernel, void *const *all, std::index_sequence<I...>) {
    ((void (*)(decltype((void)I, (void *)0)...))kernel)(all[I]...);
}
}  // namespace opd_emu
static inline cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *, void **, unsigned,
                                              cudaLibraryOption *, void **, unsigned) {
    void *const handle = dlopen((const char *)code, RTLD_NOW | RTLD_LOCAL);
    void (*begin)(void (*)(), uint64_t (*)(uint64_t, int), unsigned (*)(int)) = NULL;
    void *const found = handle ? dlsym(handle, "opd_emu_begin") : NULL;
    if (!found) { return opd_emu::note(cudaErrorInvalidValue); }
    memcpy(&begin, &found, sizeof found);
    begin(opd_emu::library_barrier, opd_emu::library_exchange, opd_emu::library_place);
    *library = new opd_emu_library{handle};
    return cudaSuccess;
}
static inline cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
    *kernel = dlsym(library->handle, name);
    return *kernel ? cudaSuccess : opd_emu::note(cudaErrorInvalidValue);
}
static inline cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    (void)dlclose(library->handle);
    delete library;
    return cudaSuccess;
}
/* Calls such a kernel with 64 arguments: it ignores those that it does not have.  `args` ends with NULL. */
static inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *kernel, void **args) {
    opd_emu::counts.libraries++;
    std::vector<void *> all(64);
    for (size_t i = 0; i < all.size() && args[i]; i++) { all[i] = *(void **)args[i]; }
    return opd_emu::launch(c, kernel, [=](int device) OPD_EMU_UNSEEN -> bool {
        if (device != opd_emu::RUN_THREAD) {
            for (void *at : all) { if (!opd_emu::reachable((char *)at, device)) { return false; } }
            return true;
        }
        opd_emu::machine.now->inside = true;
        opd_emu::library_call((void *)(uintptr_t)kernel, all.data(), std::make_index_sequence<64>());
        opd_emu::machine.now->inside = false;
        return true;
    });
}

/* For tests, which are C: what was counted; what is called inside of some calls, with their names. */
extern "C" {
__attribute__((used)) inline long opd_emu_count(const char *name) {
    const opd_emu::Counts &c = opd_emu::counts;
    return !strcmp(name, "contexts") ? c.contexts : !strcmp(name, "direct") ? c.direct : !strcmp(name, "staged") ? c.staged
        : !strcmp(name, "handles") ? c.handles : !strcmp(name, "destroyed") ? c.destroyed : !strcmp(name, "pinned") ? c.pinned
        : !strcmp(name, "libraries") ? c.libraries : !strcmp(name, "launches") ? c.launches
        : !strcmp(name, "products") ? c.products : !strcmp(name, "megaflops") ? c.megaflops
        : !strcmp(name, "calls") ? c.calls : -1;
}
__attribute__((used)) inline void opd_emu_hook_set(void (*hook)(const char *call)) { opd_emu::hook = hook; }
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
