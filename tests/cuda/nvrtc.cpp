/* A stand-in for NVRTC, for the emulation: compiles kernels that opd_graph_gpu_code has written with the C++ compiler
   ($OPD_EMU_CXX, default c++) to a library, whose path is the "machine code".  cudaLibraryLoadData of cuda_runtime.h
   loads it.  Set OPD_NVRTC to this library.

     g++ -std=c++17 -shared -fPIC tests/cuda/nvrtc.cpp -o nvrtc.so

   OPD_EMU_NVRTC_FAILS=1: nothing can be compiled.
   OPD_EMU_NVRTC_REAL=libnvrtc.so: this library, which needs no GPU, must be able to compile the text, too. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <string>

static const char prelude[] = R"(
#include <math.h>
#include <stdint.h>
#include <string.h>
#define __device__
#define __global__
#define __shared__ static
static void (*opd_emu_barrier)();
static uint64_t (*opd_emu_exchange)(uint64_t, int);
static unsigned (*opd_emu_place)(int);
extern "C" void opd_emu_begin(void (*barrier)(), uint64_t (*exchange)(uint64_t, int), unsigned (*place)(int)) {
    opd_emu_barrier = barrier; opd_emu_exchange = exchange; opd_emu_place = place;
}
struct opd_emu_three { unsigned x; };
#define threadIdx (opd_emu_three{opd_emu_place(0)})
#define blockIdx (opd_emu_three{opd_emu_place(1)})
#define blockDim (opd_emu_three{opd_emu_place(2)})
#define gridDim (opd_emu_three{opd_emu_place(3)})
static inline void __syncthreads() { opd_emu_barrier(); }
template <class T> static inline T __shfl_xor_sync(unsigned, T v, int mask) {
    uint64_t bits = 0;
    memcpy(&bits, &v, sizeof v);
    bits = opd_emu_exchange(bits, mask);
    memcpy(&v, &bits, sizeof v);
    return v;
}
)";

struct program { std::string text, path; };
/* Returns whether NVRTC itself, if $OPD_EMU_NVRTC_REAL names it, compiles the text; prints what it says if not. */
static bool real_compiles(const std::string &text) {
    const char *const name = getenv("OPD_EMU_NVRTC_REAL");
    void *const library = name && *name ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL, *at = NULL;
    if (!name || !*name) { return true; }
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *) = NULL;
    int (*compile)(void *, int, const char *const *) = NULL, (*destroy)(void **) = NULL;
    int (*log_size)(void *, size_t *) = NULL, (*log)(void *, char *) = NULL;
    struct { const char *name; void *to; } all[] = {{"nvrtcCreateProgram", &create}, {"nvrtcCompileProgram", &compile},
        {"nvrtcDestroyProgram", &destroy}, {"nvrtcGetProgramLogSize", &log_size}, {"nvrtcGetProgramLog", &log}};
    for (auto &one : all) {
        void *const found = library ? dlsym(library, one.name) : NULL;
        if (!found) { fprintf(stderr, "%s: no %s\n", name, one.name); return false; }
        memcpy(one.to, &found, sizeof found);
    }
    const char *const options[] = {"--gpu-architecture=sm_90", "--std=c++17"};
    size_t size = 0;
    if (create(&at, text.c_str(), "graph.cu", 0, NULL, NULL)) { return false; }
    const bool good = compile(at, 2, options) == 0;
    if (!good && log_size(at, &size) == 0) {
        std::string said(size + 1, 0);
        (void)log(at, &said[0]);
        fprintf(stderr, "%s\n%s\n", text.c_str(), said.c_str());
    }
    (void)destroy(&at);
    return good;
}
extern "C" {
int nvrtcCreateProgram(void **result, const char *text, const char *, int, const char *const *, const char *const *) {
    *result = new program{text, ""};
    return 0;
}
int nvrtcDestroyProgram(void **at) { delete (program *)*at; *at = NULL; return 0; }
int nvrtcCompileProgram(void *at, int, const char *const *options) {
    program *const p = (program *)at;
    const char *const fails = getenv("OPD_EMU_NVRTC_FAILS"), *const given = getenv("OPD_EMU_CXX");
    char folder[] = "/tmp/opd_nvrtc.XXXXXX";
    if (strncmp(options[0], "--gpu-architecture=sm_", 22) != 0 || (fails && *fails == '1') || !real_compiles(p->text) ||
        !mkdtemp(folder)) { return 6; }
    const std::string source = std::string(folder) + "/graph.cpp", library = std::string(folder) + "/graph.so";
    FILE *const file = fopen(source.c_str(), "w");
    if (!file) { return 6; }
    fprintf(file, "%s%s\n", prelude, p->text.c_str());
    fclose(file);
    const std::string command = std::string(given ? given : "c++") + " -std=c++17 -O0 -w -shared -fPIC -o " + library + " " + source;
    if (system(command.c_str()) != 0) { return 6; }
    p->path = library;
    return 0;
}
int nvrtcGetCUBINSize(void *at, size_t *size) { *size = ((program *)at)->path.size() + 1; return 0; }
int nvrtcGetCUBIN(void *at, char *code) { strcpy(code, ((program *)at)->path.c_str()); return 0; }
int nvrtcGetProgramLogSize(void *, size_t *size) { *size = sizeof "it was asked to fail"; return 0; }
int nvrtcGetProgramLog(void *, char *log) { strcpy(log, "it was asked to fail"); return 0; }
}
