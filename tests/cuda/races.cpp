/* Does in the emulation what compute-sanitizer does on a GPU: checks every access of a device thread.

     g++ -std=c++17 -O1 -g -fno-tree-sra -fsanitize=thread --param=tsan-distinguish-volatile=1 -DOPD_EMU_RACES \
         -Itests/cuda -I. -x c++ -c opdispatch_cuda.cu
     g++ -std=c++17 -O2 -DOPD_EMU_RACES -Itests/cuda -c tests/cuda/races.cpp

   This uses the instrumentation of the thread sanitizer without its library: the compiler calls __tsan_read4 and
   similar functions for each access, and this file defines them.  (This is for GCC; at -O0 it does not report stores
   of a function's result.)  Link everything without -fsanitize=thread.  Run with OPD_CUDA_NO_CACHE=1, so that each
   tensor is a separate allocation.

   Found:  races      two threads of a block access a byte, one of them writes, and there is no __syncthreads or, in
                      a warp, __syncwarp between (shuffles and votes do not order memory); or two blocks of a launch do
           memory     an access outside of the live allocations, or not aligned to its size; dynamic shared memory
                      beyond the size of the launch; host memory that is not pinned; local variables of another thread
           contents   a read of memory that nothing has written; shared memory is new in each block
   Not a race: two atomic accesses (atomic functions or volatile).  For pinned memory, only the bounds are checked:
   kernels store errors there, and the first thread wins.

   Not found: an access past the end of a static __shared__ array that another one follows (the address sanitizer
   finds it), order by fences and atomics (a scheme with a last block would be reported as a race), races between
   launches, errors in libraries.

   Each finding is printed once for each place in the code.  At the end, all findings are printed with their number,
   function, file and line, and the process ends with status 66. */
#include "cuda_runtime.h"
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <stdarg.h>
#include <unistd.h>
#include <string>

extern "C" char __executable_start, __bss_start, _end;

namespace {
using opd_emu::machine;

//-- the state of each byte ---------------------------------------------------------------------------------------
//
//  Phases are counted through: a block begins one, each barrier of the block begins one.  So an access is of this launch
//  when its phase is not before the launch's first, of this block likewise, and before the last barrier when it is
//  before the present one.  What the host does has phases of its own, before all others.

enum { NOTHING = 0, MADE = 1, HOST = 2, FIRST = 3 };      // phases: no memory; never written; by the host; of threads
struct Access {
    uint64_t phase;
    uint32_t code;                                // the place in the code, from the start of the program
    uint32_t thread : 10, step : 1, syncs : 21;   // its number in the block; atomic; its warp's __syncwarps
};
struct Cell { Access write, read, other; };       // other: a reader beside the last one, the farther away the better

Cell *device_cells, *dynamic_cells, *static_cells;
char *const static_first = &__bss_start, *const static_end = &_end;
const size_t DYNAMIC = 228 << 10;

uint64_t phase = FIRST, block_first, launch_first;
thread_local bool launching;                      // this thread of the host runs the device
const void *kernel;
size_t dynamic_bytes, block_now;
std::vector<std::pair<uint64_t, size_t>> begun;   // blocks of this launch: first phase, number

Cell *cells(size_t n) {
    void *p = mmap(NULL, n * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) { fprintf(stderr, "races: no memory\n"); abort(); }
    return (Cell *)p;
}
bool in_device(const void *p) { return (size_t)((char *)p - machine.region) < machine.region_bytes; }
Cell *device_cell(const void *p) {
    if (!device_cells) { device_cells = cells(machine.region_bytes); }
    return device_cells + ((char *)p - machine.region);
}

//-- findings -----------------------------------------------------------------------------------------------------

struct Finding {
    std::string kind, text;
    const void *kernel;
    std::vector<const void *> at;                 // where, innermost first
    const void *before;                           // the other access
    unsigned long count;
};
typedef std::tuple<std::string, const void *, const void *, const void *> Same;
std::map<Same, size_t> known;
std::vector<Finding> findings;

std::string text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
std::string text_of(const char *format, ...) {
    char text[400];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return text;
}
std::string block_text(size_t b) {
    const dim3 &g = machine.grid_dim;
    return text_of("(%zu,%zu,%zu)", b % g.x, b / g.x % g.y, b / g.x / g.y);
}
std::string thread_text(size_t i) {
    const dim3 &b = machine.block_dim;
    return text_of("(%zu,%zu,%zu)", i % b.x, i / b.x % b.y, i / b.x / b.y);
}
size_t block_at(uint64_t p) {
    auto at = std::upper_bound(begun.begin(), begun.end(), std::make_pair(p, SIZE_MAX));
    return at == begun.begin() ? 0 : std::prev(at)->second;
}
std::string place_text(const void *p) {
    if (in_device(p)) {
        auto at = machine.blocks.upper_bound((char *)p);
        if (at == machine.blocks.begin()) { return text_of("%p, before all allocations", p); }
        --at;
        const size_t offset = (size_t)((char *)p - at->first), bytes = at->second.first;
        return offset < bytes ? text_of("byte %zu of an allocation of %zu bytes", offset, bytes)
            : text_of("%zu bytes behind an allocation of %zu bytes", offset - bytes, bytes);
    }
    if ((size_t)((char *)p - (char *)machine.shared) < machine.shared_bytes.size()) {
        return text_of("byte %zu of %zu of dynamic shared memory", (size_t)((char *)p - (char *)machine.shared), dynamic_bytes);
    }
    if ((char *)p >= static_first && (char *)p < static_end) { return text_of("static %p", p); }
    return text_of("memory of the host at %p", p);
}
void find(const char *kind, const void *p, size_t size, const char *how, const void *code, const Access *before) {
    const void *other = before ? &__executable_start + before->code : NULL;
    const Same same(kind, kernel, code, other);
    auto was = known.find(same);
    if (was != known.end()) { findings[was->second].count++; return; }
    Finding f;
    void *frames[12];
    const int n = backtrace(frames, 12);
    size_t k = 0;
    f.kind = kind; f.kernel = kernel; f.before = other; f.count = 1;
    while (k < (size_t)n && frames[k] != code) { k++; }
    for (; k < (size_t)n && f.at.size() < 6; k++) { f.at.push_back(frames[k]); }
    if (f.at.empty()) { f.at.push_back(code); }
    f.text = text_of("%s of %zu bytes at ", how, size) + place_text(p) + ", launch " + text_of("%lu", machine.launches);
    if (machine.now) {
        f.text += ", block " + block_text(block_now) + " thread " + thread_text((size_t)(machine.now - machine.threads.data()));
    }
    if (before) {
        f.text += text_of("; %s", before->step ? "in one step " : "") + "before by block " + block_text(block_at(before->phase)) + " thread " + thread_text(before->thread);
    }
    known[same] = findings.size();
    findings.push_back(f);
    (void)fflush(stdout);
    fprintf(stderr, "races: finding %zu: %s: %s\n", findings.size(), kind, f.text.c_str());
}

//-- an access ----------------------------------------------------------------------------------------------------

/* Whether nothing lies between an access, of those from phase `first` on, and one now, of which one writes: NULL, or
   what kind of race it is. */
inline const char *race(const Access &a, const Access &now, uint64_t first) {
    if (a.phase < first || (a.step && now.step)) { return NULL; }
    if (a.phase < block_first) { return "race between blocks"; }
    if (a.phase < phase || a.thread == now.thread) { return NULL; }
    if (a.thread / 32 == now.thread / 32 && a.syncs != now.syncs) { return NULL; }
    return "race in a block";
}
/* How far away one access is from another. */
inline int far(const Access &a, const Access &now, uint64_t first) {
    return a.phase < first ? 0 : a.phase < block_first ? 4 : a.phase < phase || a.thread == now.thread ? 1
        : a.thread / 32 == now.thread / 32 ? 2 : 3;
}
enum { READ = 1, WRITE = 2, STEP = 4 };
const char *how_text(int how) { return how & STEP ? "an atomic access" : how & WRITE ? "a write" : "a read"; }
inline void check(Cell *c, const char *p, size_t n, int how, const void *code, bool global) {
    const size_t number = (size_t)(machine.now - machine.threads.data());
    const uint64_t first = global ? launch_first : block_first;      // shared memory is the block's alone
    const Access *before = NULL;
    const char *kind = NULL;
    size_t unwritten = 0, i;
    Access now;
    now.phase = phase;
    now.code = (uint32_t)((const char *)code - &__executable_start);
    now.thread = (uint32_t)number & 1023; now.step = how & STEP ? 1 : 0; now.syncs = machine.warps[number / 32].syncs & 0x1fffff;
    for (i = 0; i < n; i++) {
        Cell &of = c[i];
        if (global && of.write.phase == NOTHING) { find("memory that is not allocated", p + i, n, how_text(how), code, NULL); return; }
        unwritten += how & READ && of.write.phase < (global ? (uint64_t)HOST : block_first);
        if (!kind && (kind = race(of.write, now, first)) != NULL) { before = &of.write; }
        if (how & WRITE) {
            if (!kind && (kind = race(of.read, now, first)) != NULL) { before = &of.read; }
            if (!kind && (kind = race(of.other, now, first)) != NULL) { before = &of.other; }
        }
        if (before) { find(kind, p + i, n, how_text(how), code, before); before = NULL; }
        if (how & WRITE) { of.write = now; of.read.phase = of.other.phase = 0; continue; }
        if ((of.read.phase != phase || of.read.thread != now.thread) && far(of.read, now, first) >= far(of.other, now, first)) {
            of.other = of.read;
        }
        of.read = now;
    }
    /* A structure's bytes between its members may never have been written. */
    if (unwritten && (n <= 8 || unwritten == n)) { find("contents that nobody wrote", p, n, how_text(how), code, NULL); }
}
inline void touch(const char *p, size_t n, int how, const void *code, bool aligned) {
    opd_emu::Thread *t = machine.now;
    if (!launching || !t || !t->inside) { return; }
    if ((size_t)(p - t->fiber->stack) < opd_emu::STACK) { return; }
    if ((size_t)(p - (char *)&machine) < sizeof machine) { return; }
    if (aligned && ((uintptr_t)p & (n - 1))) { find("not aligned", p, n, how_text(how), code, NULL); }
    if (in_device(p)) { check(device_cell(p), p, n, how, code, true); return; }
    const size_t offset = (size_t)(p - (char *)machine.shared);
    if (offset < dynamic_bytes || (offset < machine.shared_bytes.size() && machine.shared)) {
        if (offset + n > dynamic_bytes) { find("beyond the dynamic shared memory", p, n, how_text(how), code, NULL); return; }
        check(dynamic_cells + offset, p, n, how, code, false);
        return;
    }
    if (p >= static_first && p < static_end) { check(static_cells + (p - static_first), p, n, how, code, false); return; }
    if (p >= &__executable_start && p < static_end && !(how & WRITE)) { return; }    // constants
    if (opd_emu::pinned(p, n)) { return; }
    find("memory that is not the device's", p, n, how_text(how), code, NULL);
}

//-- the end ------------------------------------------------------------------------------------------------------

/* Function, file and line of places in the code, by addr2line. */
std::string lines_of(const std::vector<const void *> &at) {
    std::string command = "addr2line -f -C -i -p -e /proc/" + std::to_string(getpid()) + "/exe", all;
    char text[1000];
    Dl_info info;
    const bool moved = dladdr((void *)&lines_of, &info) && (uintptr_t)info.dli_fbase > 0x400000;
    for (const void *p : at) {
        command += text_of(" %#zx", (size_t)p - 1 - (moved ? (size_t)info.dli_fbase : 0));
    }
    FILE *f = popen((command + " 2>/dev/null").c_str(), "r");
    while (f && fgets(text, sizeof text, f)) {
        std::string line = text;
        if (line.find("/include/c++/") != std::string::npos || line.find("cuda_runtime.h") != std::string::npos) { continue; }
        if (line.size() > 280) { line = line.substr(0, 140) + " ... " + line.substr(line.size() - 140); }
        all += "      " + line;
    }
    if (f) { (void)pclose(f); }
    return all;
}
struct AtEnd {
    ~AtEnd() {
        unsigned long all = 0;
        size_t shown = 0;
        if (findings.empty()) { return; }
        (void)fflush(stdout);
        for (const Finding &f : findings) {
            all += f.count;
            if (shown++ >= 60) { continue; }
            fprintf(stderr, "races: %zu. %s, %lu times: %s\n%s", shown, f.kind.c_str(), f.count, f.text.c_str(), lines_of(f.at).c_str());
            if (f.before) { fprintf(stderr, "    before:\n%s", lines_of({f.before}).c_str()); }
            if (f.kernel) { fprintf(stderr, "    kernel:\n%s", lines_of({(const char *)f.kernel + 1}).c_str()); }
        }
        fprintf(stderr, "races: %zu findings, %lu accesses\n", findings.size(), all);
        _exit(66);
    }
} at_end;
}  // namespace

//-- events of the emulated machine -------------------------------------------------------------------------------

namespace opd_emu {
unsigned long races_found(const char *k) {
    unsigned long n = 0;
    for (const Finding &f : findings) { n += k && f.kind != k ? 0 : f.count; }
    return n;
}
void races_forget() { findings.clear(); known.clear(); }
void races_launch(const void *k, size_t shared, size_t) {
    if (!dynamic_cells) { dynamic_cells = cells(DYNAMIC); static_cells = cells((size_t)(static_end - static_first)); }
    kernel = k; dynamic_bytes = shared; launching = true;
    launch_first = phase + 1;
    begun.clear();
}
void races_block(size_t b) { block_first = ++phase; block_now = b; begun.push_back(std::make_pair(phase, b)); }
void races_barrier() { phase++; }
void races_end() { launching = false; kernel = NULL; }
static void fill(const void *p, size_t bytes, uint64_t with) {
    Cell *c = device_cell(p);
    for (size_t i = 0; i < bytes; i++) { c[i].write.phase = with; c[i].read.phase = c[i].other.phase = 0; }
}
void races_made(char *at, size_t bytes) { fill(at, bytes, MADE); }
void races_freed(char *at, size_t bytes) { fill(at, bytes, NOTHING); }
void races_host(const void *to, const void *from, size_t bytes) {
    if (!in_device(to)) { return; }
    if (!in_device(from)) { fill(to, bytes, HOST); return; }
    std::vector<bool> written(bytes);
    for (size_t i = 0; i < bytes; i++) { written[i] = device_cell(from)[i].write.phase >= HOST; }
    for (size_t i = 0; i < bytes; i++) { fill((const char *)to + i, 1, written[i] ? HOST : MADE); }
}
void races_library(const void *p, size_t bytes, bool write) {
    if (!in_device(p)) { return; }
    for (size_t i = 0; i < bytes; i++) {
        const uint64_t was = device_cell(p)[i].write.phase;
        if (was == NOTHING || (was == MADE && !write)) {
            find(was == MADE ? "contents that nobody wrote" : "memory that is not allocated", (const char *)p + i, bytes,
                 write ? "a library's write" : "a library's read", __builtin_return_address(0), NULL);
            return;
        }
    }
    if (write) { fill(p, bytes, HOST); }
}
void races_atomic(const void *p, size_t bytes, const void *code) {
    touch((const char *)p, bytes, READ | WRITE | STEP, code, true);
}
}  // namespace opd_emu

//-- functions that the compiler calls ----------------------------------------------------------------------------

#define RACES_SIZES(n)                                                                                              \
    void __tsan_read##n(const char *p) { touch(p, n, READ, __builtin_return_address(0), true); }                    \
    void __tsan_write##n(const char *p) { touch(p, n, WRITE, __builtin_return_address(0), true); }                  \
    void __tsan_read_write##n(const char *p) { touch(p, n, READ | WRITE, __builtin_return_address(0), true); }      \
    void __tsan_volatile_read##n(const char *p) { touch(p, n, READ | STEP, __builtin_return_address(0), true); }    \
    void __tsan_volatile_write##n(const char *p) { touch(p, n, WRITE | STEP, __builtin_return_address(0), true); }  \
    void __tsan_unaligned_read##n(const char *p) { touch(p, n, READ, __builtin_return_address(0), false); }         \
    void __tsan_unaligned_write##n(const char *p) { touch(p, n, WRITE, __builtin_return_address(0), false); }       \
    void __tsan_unaligned_read_write##n(const char *p) { touch(p, n, READ | WRITE, __builtin_return_address(0), false); }
extern "C" {
RACES_SIZES(1)
RACES_SIZES(2)
RACES_SIZES(4)
RACES_SIZES(8)
RACES_SIZES(16)
void __tsan_read_range(const char *p, size_t n) { touch(p, n, READ, __builtin_return_address(0), false); }
void __tsan_write_range(const char *p, size_t n) { touch(p, n, WRITE, __builtin_return_address(0), false); }
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
void __tsan_init(void) {}
/* The host's own atomics, of the implementation of std: as they are. */
#define RACES_ATOMICS(n, T)                                                                                         \
    T __tsan_atomic##n##_load(const volatile T *p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }            \
    void __tsan_atomic##n##_store(volatile T *p, T v, int) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); }            \
    T __tsan_atomic##n##_exchange(volatile T *p, T v, int) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }  \
    T __tsan_atomic##n##_fetch_add(volatile T *p, T v, int) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }  \
    T __tsan_atomic##n##_fetch_sub(volatile T *p, T v, int) { return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST); }  \
    T __tsan_atomic##n##_fetch_or(volatile T *p, T v, int) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }    \
    T __tsan_atomic##n##_fetch_and(volatile T *p, T v, int) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); }  \
    int __tsan_atomic##n##_compare_exchange_strong(volatile T *p, T *e, T v, int, int) {                            \
        return __atomic_compare_exchange_n(p, e, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                     \
    }                                                                                                               \
    int __tsan_atomic##n##_compare_exchange_weak(volatile T *p, T *e, T v, int, int) {                              \
        return __atomic_compare_exchange_n(p, e, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                      \
    }
RACES_ATOMICS(8, unsigned char)
RACES_ATOMICS(16, unsigned short)
RACES_ATOMICS(32, unsigned)
RACES_ATOMICS(64, unsigned long long)
}
