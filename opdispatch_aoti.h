/* opdispatch_aoti.h - models that PyTorch's AOTInductor compiled, and extensions of PyTorch, run by opdispatch.h,
   without libtorch.

   WHAT IT IS
     torch._inductor.aoti_compile_and_package turns an exported program into a shared library with C++ kernels for one
     machine.  Such a library calls back into PyTorch by a table of C functions: it makes tensors, frees them, and calls
     the operators that were not compiled.  This file gives it those functions, from the operators of opdispatch.h.
     Linux on x86-64 and aarch64; models for the CPU.

   BUILD
     In exactly one C or C++ file, which may be the one with OPDISPATCH_IMPLEMENTATION:
         #define OPDISPATCH_AOTI_IMPLEMENTATION
         #include "opdispatch_aoti.h"
     The program is linked as always (-lm; not with -rdynamic).  The C++ library that models are linked with
     (libstdc++.so.6, often libgomp.so.1) must be installed; libtorch need not be, and is not loaded where it is.

   USE
         opd_aoti *model = opd_aoti_load("model.pt2", NULL);
         opd_tensor *out[1];
         if (opd_aoti_run(model, OPD_TENSORS(x), out, 1) == 1) { opd_print(out[0]); }
         opd_aoti_free(model);

   EXTENSIONS
         opd_extension_load("torchvision/_C_stable.so");                 // its operators are there from now on
         opd_tensor *kept = OPD_CALL(opd_find("torchvision::nms"), boxes, scores, 0.5);
     Libraries of operators that are built for the stable C interface of PyTorch 2.9 and later (STABLE_TORCH_LIBRARY of
     torch/csrc/stable/library.h) register them here, with their kernels for the CPU and those that are composed of
     other operators; kernels for other devices are left out, and so are the libraries that only those need: CUDA need
     not be installed.  What is not in the binary must be given by the program: derivatives (opd_autograd_register) and
     fake kernels (opd_fake_register), which PyTorch's users register in Python.  For torchvision's operators that is
     done.  Scalars and generators are not handed over, as in PyTorch.  torch_parallel_for runs on the calling thread.

   THE REVERSE
         cc -O2 -shared -fPIC -DOPDISPATCH_IN_TORCH ops.c -x c opdispatch_aoti.h -o ops.so -lm
     A file of operators (OPD_LIBRARY blocks, as of a plug-in) becomes a library for PyTorch 2.10 and later, which
     torch.ops.load_library loads: its operators are torch.ops.NAMESPACE.NAME, on CPU and meta tensors (those of a
     kernel for all devices also without a tensor).  Arguments are not copied, results are.  An operator that has a
     derivative comes with NAME_vjp(Tensor?[] grads, its arguments) -> Tensor?[], for torch.library.register_autograd:
     PyTorch takes formulas from Python alone; its own derivative runs there, on a forward pass of its own.  Neither
     PyTorch's headers nor its libraries are needed; this file comes last.  See examples/plugin_in_torch.py.

   TRUST
     A compiled model is a program: loading one runs its code, with all that this process may do.  What can be checked
     before is checked (the archive, the machine, the library's tables, what it asks for); what it computes is its own.

   HOW IT LOADS
     The library is copied into a file in memory (memfd, or a temporary file that is gone afterwards), where the entries
     for libtorch among its dependencies name a small library instead, which is made in memory, too.  That one has one
     stub for each function the model asks for, under a name that is the model's name of it with another first letter:
     so nothing meets the symbols of a libtorch that this process may have, and models do not meet each other. */
#ifndef OPDISPATCH_AOTI_H
#define OPDISPATCH_AOTI_H

#if defined(OPDISPATCH_IN_TORCH)                  /* this file is the last source of a library for PyTorch */
#define OPDISPATCH_IMPLEMENTATION
#define OPDISPATCH_AOTI_IMPLEMENTATION
#endif
#include "opdispatch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled model.  Runs may be called from any thread, several at once. */
typedef struct opd_aoti opd_aoti;
typedef struct opd_aoti_options {
    const char *name;            /* which model of the package; NULL: "model", or the first there is */
    int copies;                  /* how many runs there may be at once, others wait; 0: 1.  Constants are shared */
    bool unchecked;              /* do not check sizes, strides and dtypes of inputs and of what operators return: less
                                    work in a run, and a crash where they are wrong */
} opd_aoti_options;
/* Loads a package (.pt2), or the library out of one (.so).  options may be NULL.  NULL with an error that says what is
   wrong: no such file, damaged, for another machine, device or instruction set, or functions that are not there, by
   name.  Belongs to the caller. */
OPD_API opd_aoti *opd_aoti_load(const char *path, const opd_aoti_options *options);
/* Frees it.  Not while it runs; results stay.  NULL is allowed. */
OPD_API void opd_aoti_free(opd_aoti *model);
OPD_API const char *opd_aoti_name(const opd_aoti *model);
/* The names of all models in the package; NULL beyond the last. */
OPD_API const char *opd_aoti_file_name(const opd_aoti *model, int i);
/* What the package says of the model ("AOTI_CPU_ISA"), as text; NULL: nothing under that key. */
OPD_API const char *opd_aoti_metadata(const opd_aoti *model, const char *key);
/* Inputs and outputs by position, when lists and dicts are taken apart; names as the compiler gave them. */
OPD_API int opd_aoti_ninputs(const opd_aoti *model);
OPD_API int opd_aoti_noutputs(const opd_aoti *model);
OPD_API const char *opd_aoti_input_name(const opd_aoti *model, int i);
OPD_API const char *opd_aoti_output_name(const opd_aoti *model, int i);
/* Runs it; inputs are CPU tensors.  Fills outputs (tensors of the innermost scope; NULL: the model gives None there) and
   returns how many there are, or -1 with an error: another number of inputs than it has, sizes, dtypes or strides that it was not compiled for, an
   operator that failed.  There is no derivative: with grad mode on, inputs that require grad are an error.  What the
   model writes into its buffers stays there for the next run; into inputs, in them. */
OPD_API int opd_aoti_run(opd_aoti *model, opd_tensors inputs, opd_tensor **outputs, int cap);
/* Runs it as an opd_transform_fn, with the model as user. */
OPD_API int opd_aoti_function(void *model, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* Its constants: parameters, buffers and what the compiler folded.  Names live as long as the model. */
typedef struct opd_aoti_constant {
    const char *name;            /* PyTorch's: "layers.0.weight"; of what was folded the compiler's */
    const char *symbol;          /* the compiler's */
    opd_scalar_type dtype;
    int64_t bytes;               /* as they are stored: to a multiple of 64 */
    bool folded;                 /* computed from others, by the compiler or before the first run */
    bool buffer;                 /* no parameter: runs may write it */
} opd_aoti_constant;
OPD_API int64_t opd_aoti_constants(const opd_aoti *model);
OPD_API int opd_aoti_constant_at(const opd_aoti *model, int64_t i, opd_aoti_constant *constant);
/* A copy of a constant as it is now, buffers as runs have left them; NULL with an error, also where the model is older
   than PyTorch 2.10 and cannot say. */
OPD_API opd_tensor *opd_aoti_constant_get(opd_aoti *model, const char *name);
/* Gives constants other values, by either name; the tensors must have dtype and size of those, and are copied.  Not
   while it runs.  A model that was compiled without its weights needs them all, and is not run before.  0, or -1 with
   an error and nothing changed. */
OPD_API int opd_aoti_update(opd_aoti *model, const char *const *names, opd_tensors tensors);

/* Loads an extension of PyTorch's: a library that registers operators by the stable interface of PyTorch 2.9 and later
   (torch/csrc/stable, aoti_torch_library_...), as torchvision's _C_stable.so.  Returns how many operators it defines,
   which are then operators like others: called, traced, saved, and differentiated where it gives derivatives; 0 where
   it gives kernels to operators of others.  -1 with an error, and nothing registered: no such file, damaged, for
   another machine, functions that are not there, by name, or what it registers is refused.  Loading it again does
   nothing.  What its kernels throw is an error of the call.  Kernels for other devices than the CPU are left out. */
OPD_API int opd_extension_load(const char *path);
/* Undoes everything that it registered, by the path it was loaded from.  Its code stays while tensors need it.  0, or
   -1 with an error. */
OPD_API int opd_extension_unload(const char *path);

#ifdef __cplusplus
}
#endif

#endif /* OPDISPATCH_AOTI_H */

//----------------------------------------------------------------------------------------------------------------------
//  The implementation
//----------------------------------------------------------------------------------------------------------------------

#if defined(OPDISPATCH_AOTI_IMPLEMENTATION) && !defined(OPDI_AOTI)
#define OPDI_AOTI

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(OPD_NO_PLUGINS)
#define OPDI_AOTI_THERE
#endif

#if !defined(OPDI_AOTI_THERE)

static int opdi_aoti_without(const char *what) {
    return opd_fail(OPD_ERROR_REGISTER, "%s: compiled libraries run on Linux, on x86-64 and aarch64, and not where "
                    "OPD_NO_PLUGINS is defined", what);
}
opd_aoti *opd_aoti_load(const char *path, const opd_aoti_options *options) {
    (void)path;
    (void)options;
    (void)opdi_aoti_without("opd_aoti_load");
    return NULL;
}
void opd_aoti_free(opd_aoti *model) { (void)model; }
const char *opd_aoti_name(const opd_aoti *model) {
    (void)model;
    return NULL;
}
const char *opd_aoti_file_name(const opd_aoti *model, int i) {
    (void)i;
    return opd_aoti_name(model);
}
const char *opd_aoti_metadata(const opd_aoti *model, const char *key) {
    (void)key;
    return opd_aoti_name(model);
}
int opd_aoti_ninputs(const opd_aoti *model) {
    (void)model;
    return 0;
}
int opd_aoti_noutputs(const opd_aoti *model) { return opd_aoti_ninputs(model); }
const char *opd_aoti_input_name(const opd_aoti *model, int i) { return opd_aoti_file_name(model, i); }
const char *opd_aoti_output_name(const opd_aoti *model, int i) { return opd_aoti_file_name(model, i); }
int opd_aoti_run(opd_aoti *model, opd_tensors inputs, opd_tensor **outputs, int cap) {
    (void)model;
    (void)inputs;
    (void)outputs;
    (void)cap;
    return opdi_aoti_without("opd_aoti_run");
}
int opd_aoti_function(void *model, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    return opd_aoti_run((opd_aoti *)model, opd_tensors_of(inputs, ninputs), outputs, 0);
}
int64_t opd_aoti_constants(const opd_aoti *model) { return opd_aoti_ninputs(model); }
int opd_aoti_constant_at(const opd_aoti *model, int64_t i, opd_aoti_constant *constant) {
    (void)model;
    (void)i;
    (void)constant;
    return opdi_aoti_without("opd_aoti_constant_at");
}
opd_tensor *opd_aoti_constant_get(opd_aoti *model, const char *name) {
    (void)model;
    (void)name;
    (void)opdi_aoti_without("opd_aoti_constant_get");
    return NULL;
}
int opd_aoti_update(opd_aoti *model, const char *const *names, opd_tensors tensors) {
    (void)model;
    (void)names;
    (void)tensors;
    return opdi_aoti_without("opd_aoti_update");
}
int opd_extension_load(const char *path) {
    (void)path;
    return opdi_aoti_without("opd_extension_load");
}
int opd_extension_unload(const char *path) {
    (void)path;
    return opdi_aoti_without("opd_extension_unload");
}

#else

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#if !defined(__cplusplus)                         /* strict C does not declare them */
extern long syscall(long number, ...);
extern int mkstemp(char *path);
extern char *realpath(const char *path, char *whole);
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__TINYC__)                            /* programs without threads */
#define OPDI_AOTI_THREAD static
#define OPDI_AOTI_NEXT(count) (++(count))
#else
#define OPDI_AOTI_THREAD static __thread
#define OPDI_AOTI_NEXT(count) __atomic_add_fetch(&(count), 1, __ATOMIC_RELAXED)
#endif

//== functions that models export ======================================================================================

typedef void (*opdi_aoti_fn)(void);
typedef struct opdi_aoti_pair { const char *name; void *handle; } opdi_aoti_pair;
enum {
    OPDI_AOTI_CREATE, OPDI_AOTI_DELETE, OPDI_AOTI_RUN, OPDI_AOTI_NINPUTS, OPDI_AOTI_NOUTPUTS, OPDI_AOTI_INPUT,
    OPDI_AOTI_OUTPUT, OPDI_AOTI_NCONSTANTS, OPDI_AOTI_SYMBOL, OPDI_AOTI_FQN, OPDI_AOTI_DTYPE, OPDI_AOTI_BYTES,
    OPDI_AOTI_FOLDED, OPDI_AOTI_TYPE, OPDI_AOTI_UPDATE, OPDI_AOTI_SHARE, OPDI_AOTI_ENTRIES, OPDI_AOTI_BLOB,
        OPDI_AOTI_BLOB_SIZE,
    OPDI_AOTI_LAST_ERROR, OPDI_AOTI_FUNCTIONS
};
typedef struct opdi_aoti_export { const char *name; bool needed; } opdi_aoti_export;
static const opdi_aoti_export opdi_aoti_exports[OPDI_AOTI_FUNCTIONS] = {
    {"AOTInductorModelContainerCreateWithDevice", true}, {"AOTInductorModelContainerDelete", true},
    {"AOTInductorModelContainerRun", true}, {"AOTInductorModelContainerGetNumInputs", true},
    {"AOTInductorModelContainerGetNumOutputs", true}, {"AOTInductorModelContainerGetInputName", true},
    {"AOTInductorModelContainerGetOutputName", true}, {"AOTInductorModelContainerGetNumConstants", true},
    {"AOTInductorModelContainerGetConstantName", true}, {"AOTInductorModelContainerGetConstantOriginalFQN", false},
    {"AOTInductorModelContainerGetConstantDtype", false}, {"AOTInductorModelContainerGetConstantDataSize", false},
    {"AOTInductorModelContainerGetConstantFromFolded", false},
    {"AOTInductorModelContainerGetConstantType", false},
    {"AOTInductorModelContainerUpdateConstantBufferPairs", false},
    {"AOTInductorModelContainerUpdateUserManagedConstantBufferPairs", false},
    {"AOTInductorModelContainerExtractConstantsMapEntries", false},
    {"AOTInductorModelUpdateConstantsFromBlob", false}, {"AOTInductorModelContainerGetConstantsBlobSize", false},
    {"AOTInductorGetLastError", false}
};
typedef int32_t (*opdi_aoti_create_fn)(void **container, size_t copies, const char *device, const char *folder);
typedef int32_t (*opdi_aoti_delete_fn)(void *container);
typedef int32_t (*opdi_aoti_run_fn)(void *container, void **inputs, size_t ninputs, void **outputs, size_t noutputs,
                                    void *stream, void *executor);
typedef int32_t (*opdi_aoti_count_fn)(void *container, size_t *count);
typedef int32_t (*opdi_aoti_name_fn)(void *container, size_t i, const char **name);
typedef int32_t (*opdi_aoti_dtype_fn)(void *container, size_t i, int32_t *dtype);
typedef int32_t (*opdi_aoti_bytes_fn)(void *container, size_t i, size_t *bytes);
typedef int32_t (*opdi_aoti_flag_fn)(void *container, size_t i, bool *flag);
typedef int32_t (*opdi_aoti_pairs_fn)(void *container, const opdi_aoti_pair *pairs, size_t count, bool inactive,
                                      bool all);
typedef int32_t (*opdi_aoti_entries_fn)(void *container, const opdi_aoti_pair **pairs, size_t *count, bool inactive);
typedef int32_t (*opdi_aoti_blob_fn)(void *container, const uint8_t *blob);
typedef int32_t (*opdi_aoti_blob_size_fn)(void *container, uint64_t *bytes);
typedef int32_t (*opdi_aoti_error_fn)(const char **message);

typedef struct opdi_aoti_row opdi_aoti_row;
typedef struct opdi_aoti_range { const char *begin, *end; } opdi_aoti_range;
/* A shared library that was made in a file of its own. */
typedef struct opdi_aoti_image { int fd; char path[160]; bool temporary; void *handle; } opdi_aoti_image;
struct opd_aoti {
    const char *who;             /* for errors: the function that loads it */
    char *path, *name;
    char *names;                 /* of all models in the package, one behind the other, an empty one at the end */
    opdi_aoti_image image, stubs;
    opdi_aoti_fn functions[OPDI_AOTI_FUNCTIONS];
    void *container;
    opdi_aoti_row **rows;        /* what stubs of operators point to */
    int64_t nrows;
    opd_json *metadata, *nodes;
    opd_tensor *blob;            /* of constants that lie in the package, */
    char **weight_names;         /* or each of them */
    opd_tensor **weights;
    int64_t nweights;
    opdi_aoti_range *ranges;     /* memory of constants that the model made */
    int64_t nranges;
    size_t ninputs, noutputs, nconstants;
    bool empty;                  /* compiled without its weights, which are not given yet */
    bool unchecked, exceptions;  /* exceptions: what it throws is C++'s; else it is C, which is left by longjmp */
};

/* What a run of this thread is for: the model, and where a failed check jumps in one that is written in C. */
typedef struct opdi_aoti_frame {
    opd_aoti *model;
    bool loading;                /* tensors over memory are constants */
    jmp_buf *out;
    struct opdi_aoti_frame *outer;
} opdi_aoti_frame;
OPDI_AOTI_THREAD opdi_aoti_frame *opdi_aoti_current;

#define OPDI_AOTI_CALL(model, which, type) (*(type *)(void *)&(model)->functions[which])

//== handles ===========================================================================================================
//
// What a model knows a tensor by: a box that owns a reference.  One without a tensor is undefined, and is filled later.
// packed: the weight of a product or convolution, which was stored in blocks; ndim: with how many dims.

typedef struct opdi_aoti_handle {
    opd_tensor *tensor;
    bool packed;
    bool *gone;                  /* is set when the box is freed; or NULL */
} opdi_aoti_handle;

static int opdi_aoti_no_memory(void) { return opd_fail(OPD_ERROR_MEMORY, "out of memory"); }
/* 0 where all is well, 1 where an error is pending: what models expect. */
static int32_t opdi_aoti_status(void) { return opd_ok() ? 0 : 1; }
/* Makes a box that holds tensor; NULL is passed on.  0 or 1. */
static int32_t opdi_aoti_box(opd_tensor *tensor, void **out) {
    opdi_aoti_handle *handle = NULL;
    if (!opd_ok() || !tensor) { return 1; }
    handle = (opdi_aoti_handle *)calloc(1, sizeof *handle);
    if (!handle) { return (int32_t)-opdi_aoti_no_memory(); }
    handle->tensor = opd_keep(tensor);
    *out = handle;
    return 0;
}
/* The tensor in a box; NULL with an error for one that is undefined. */
static opd_tensor *opdi_aoti_tensor(void *handle) {
    opd_tensor *tensor = handle ? ((opdi_aoti_handle *)handle)->tensor : NULL;
    if (!tensor) { (void)opd_fail(OPD_ERROR_ARGUMENT, "a compiled model uses a tensor that is undefined"); }
    return tensor;
}
static int32_t opdi_aoti_free_handle(void *box) {
    opdi_aoti_handle *handle = (opdi_aoti_handle *)box;
    if (handle) {
        opd_release(handle->tensor);
        if (handle->gone) { *handle->gone = true; }
        free(handle);
    }
    return 0;
}
/* c10's numbers of devices, and ours. */
static int32_t opdi_aoti_device_number(opd_device device) {
    switch (device.type) {
    case OPD_CPU: return 0;
    case OPD_CUDA: return 1;
    case OPD_HIP: return 6;
    case OPD_XLA: return 9;
    case OPD_XPU: return 12;
    case OPD_MPS: return 13;
    case OPD_META: return 14;
    default: return 20;
    }
}
static opd_device opdi_aoti_device(int64_t number, int64_t index) {
    const opd_backend type = number == 0 ? OPD_CPU : number == 1 ? OPD_CUDA : number == 6 ? OPD_HIP
        : number == 9 ? OPD_XLA : number == 12 ? OPD_XPU : number == 13 ? OPD_MPS : number == 14 ? OPD_META
        : OPD_PRIVATEUSE1;
    return opd_device_of(type, type == OPD_CPU ? -1 : (int)index);
}
/* -1 with an error for a device that is not the CPU. */
static int opdi_aoti_cpu_only(int32_t device) {
    return device == 0 ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "a compiled model asks for memory on device type %d: only "
                                      "models for the CPU run here", (int)device);
}

//== tensors: what models call =========================================================================================

static bool opdi_aoti_grad_mode(void) { return opd_grad_mode_enabled(); }
static void opdi_aoti_grad_mode_set(bool on) { (void)opd_grad_mode_set(on); }
static int32_t opdi_aoti_get_data(void *handle, void **out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor && opd_numel(tensor) ? opd_data(tensor) : NULL;
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_storage_size(void *handle, int64_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor ? opd_tensor_storage_bytes(tensor) : 0;
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_storage_numel(void *handle, int64_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor ? opd_tensor_storage_bytes(tensor) / (int64_t)opd_dtype_size(opd_dtype(tensor)) : 0;
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_dim(void *handle, int64_t *out) {
    *out = opd_ndim(opdi_aoti_tensor(handle));
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_numel(void *handle, int64_t *out) {
    *out = opd_numel(opdi_aoti_tensor(handle));
    return opdi_aoti_status();
}
/* Models read sizes and strides through pointers that C++ forgot to make const. */
static int32_t opdi_aoti_get_sizes(void *handle, const int64_t **out) {
    *out = opd_sizes(opdi_aoti_tensor(handle));
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_strides(void *handle, const int64_t **out) {
    *out = opd_strides(opdi_aoti_tensor(handle));
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_one(void *handle, int64_t dim, const int64_t *list, int64_t *out) {
    const int64_t ndim = opd_ndim(((opdi_aoti_handle *)handle)->tensor), at = dim < 0 ? dim + ndim : dim;
    if (at < 0 || at >= ndim) {
        (void)opd_fail(OPD_ERROR_INDEX, "a compiled model asks for dim %lld of a tensor of %lld dims", (long long)dim,
                       (long long)ndim);
        return 1;
    }
    *out = list[at];
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_size(void *handle, int64_t dim, int64_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    return tensor ? opdi_aoti_get_one(handle, dim, opd_sizes(tensor), out) : 1;
}
static int32_t opdi_aoti_get_stride(void *handle, int64_t dim, int64_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    return tensor ? opdi_aoti_get_one(handle, dim, opd_strides(tensor), out) : 1;
}
static int32_t opdi_aoti_get_dtype(void *handle, int32_t *out) {
    *out = opd_dtype(opdi_aoti_tensor(handle));
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_device_type(void *handle, int32_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor ? opdi_aoti_device_number(opd_tensor_device(tensor)) : 0;
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_device_index(void *handle, int32_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor && opd_tensor_device(tensor).type != OPD_CPU ? opd_tensor_device(tensor).index : -1;
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_layout(void *handle, int32_t *out) {
    *out = handle && ((opdi_aoti_handle *)handle)->packed ? 3 : 0;
    return 0;
}
static int32_t opdi_aoti_get_storage_offset(void *handle, int64_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor ? opd_offset(tensor) : 0;
    return opdi_aoti_status();
}
static int32_t opdi_aoti_is_contiguous(void *handle, bool *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor && opd_is_contiguous(tensor);
    return opdi_aoti_status();
}
static int32_t opdi_aoti_is_defined(void *handle, bool *out) {
    *out = handle && ((opdi_aoti_handle *)handle)->tensor;
    return 0;
}
static int32_t opdi_aoti_new_handle(void *handle, void **out) {
    const opdi_aoti_handle *from = (const opdi_aoti_handle *)handle;
    if (from && !from->tensor) {
        *out = calloc(1, sizeof *from);
        return *out ? 0 : (int32_t)-opdi_aoti_no_memory();
    }
    if (opdi_aoti_box(opdi_aoti_tensor(handle), out)) { return 1; }
    ((opdi_aoti_handle *)*out)->packed = from->packed;
    return 0;
}
static int32_t opdi_aoti_new_undefined(void **out) {
    *out = calloc(1, sizeof(opdi_aoti_handle));
    return *out ? 0 : (int32_t)-opdi_aoti_no_memory();
}
static int32_t opdi_aoti_assign(void *from, void *to) {
    opdi_aoti_handle *handle = (opdi_aoti_handle *)to;
    opd_tensor *tensor = opdi_aoti_tensor(from);
    if (!tensor || !handle) { return 1; }
    (void)opd_assign(&handle->tensor, tensor);
    handle->packed = ((opdi_aoti_handle *)from)->packed;
    return 0;
}
static int32_t opdi_aoti_assign_out(void *from, void **out) { return opdi_aoti_new_handle(from, out); }
/* Another tensor with the dims of self: its storage at an offset, sizes and strides in elements. */
static int32_t opdi_aoti_view(void *self, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                              void **out) {
    opd_tensor *tensor = opdi_aoti_tensor(self);
    int32_t rc = 1;
    if (!tensor) { return rc; }
    opd_scope scope = opd_scope_open();
    rc = opdi_aoti_box(opd_tensor_view(tensor, sizes, strides, (int)ndim, offset), out);
    opd_scope_close(&scope);
    if (rc == 0) { ((opdi_aoti_handle *)*out)->packed = ((opdi_aoti_handle *)self)->packed; }
    return rc;
}
static int32_t opdi_aoti_as_strided(void *self, const int64_t *sizes, const int64_t *strides, void **out) {
    const opd_tensor *tensor = opdi_aoti_tensor(self);
    return tensor ? opdi_aoti_view(self, opd_ndim(tensor), sizes, strides, opd_offset(tensor), out) : 1;
}
static int32_t opdi_aoti_empty_strided(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                                       int32_t device, int32_t index, void **out) {
    (void)index;
    if (opdi_aoti_cpu_only(device)) { return 1; }
    opd_scope scope = opd_scope_open();
    const int32_t rc = opdi_aoti_box(opd_empty_strided(opd_ints_of(sizes, ndim), opd_ints_of(strides, ndim),
                                                       (opd_scalar_type)dtype), out);
    opd_scope_close(&scope);
    return rc;
}
/* How many elements a tensor of these sizes and strides spans. */
static int64_t opdi_aoti_span(const int64_t *sizes, const int64_t *strides, int64_t ndim) {
    int64_t span = 1;
    for (int64_t i = 0; i < ndim; i++) {
        if (sizes[i] == 0) { return 0; }
        span += (sizes[i] - 1) * strides[i];
    }
    return span;
}
/* Lets go of what a tensor over another one's memory holds. */
static void opdi_aoti_let_go(void *data, void *user) {
    (void)data;
    opd_release((opd_tensor *)user);
}
static int32_t opdi_aoti_from_pool(void *self, int64_t offset, int32_t dtype, int64_t ndim, const int64_t *sizes,
                                   const int64_t *strides, void **out) {
    opd_tensor *pool = opdi_aoti_tensor(self);
    const int64_t element = (int64_t)opd_dtype_size((opd_scalar_type)dtype);
    if (!pool) { return 1; }
    if (element == 0 || offset < 0 ||
        opdi_aoti_span(sizes, strides, ndim) > (opd_tensor_storage_bytes(pool) - offset) / element) {
        (void)opd_fail(OPD_ERROR_SHAPE, "a compiled model asks for a part of a pool that is not in it");
        return 1;
    }
    char *base = (char *)opd_data(pool) - opd_offset(pool) * (int64_t)opd_dtype_size(opd_dtype(pool));
    opd_scope scope = opd_scope_open();
    const int32_t rc = opdi_aoti_box(opd_tensor_wrap(base + offset, opd_ints_of(sizes, ndim), strides,
                                                     (opd_scalar_type)dtype, opdi_aoti_let_go, opd_keep(pool)), out);
    opd_scope_close(&scope);
    return rc;
}
/* Remembers memory of constants, which results must not look at when the model is gone. */
static void opdi_aoti_remember(const void *data, int64_t bytes) {
    opd_aoti *model = opdi_aoti_current && opdi_aoti_current->loading ? opdi_aoti_current->model : NULL;
    if (!model || bytes <= 0) { return; }
    const char *begin = (const char *)data;
    for (int64_t i = 0; i < model->nranges; i++) {
        opdi_aoti_range *range = &model->ranges[i];
        if (begin >= range->begin && begin <= range->end + 64) {               /* they lie behind each other */
            if (begin + bytes > range->end) { range->end = begin + bytes; }
            return;
        }
    }
    opdi_aoti_range *ranges =
        (opdi_aoti_range *)realloc(model->ranges, (size_t)(model->nranges + 1) * sizeof *ranges);
    if (!ranges) {
        (void)opdi_aoti_no_memory();
        return;
    }
    model->ranges = ranges;
    ranges[model->nranges].begin = begin;
    ranges[model->nranges++].end = begin + bytes;
}
static int32_t opdi_aoti_wrap(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                              int32_t dtype, int32_t device, void (*deleter)(void *data, void *user), void *user,
                              void **out) {
    const int64_t span = opdi_aoti_span(sizes, strides, ndim) + offset;
    const opd_scalar_type type = (opd_scalar_type)dtype;
    if (opdi_aoti_cpu_only(device)) {
        if (deleter) { deleter(data, user); }
        return 1;
    }
    opdi_aoti_remember(data, span * (int64_t)opd_dtype_size(type));
    opd_scope scope = opd_scope_open();
    opd_tensor *tensor = NULL;
    if (offset == 0) { tensor = opd_tensor_wrap(data, opd_ints_of(sizes, ndim), strides, type, deleter, user); }
    else {
        tensor = opd_tensor_wrap(data, opd_ints_of(&span, 1), NULL, type, deleter, user);
        tensor = tensor ? opd_tensor_view(tensor, sizes, strides, (int)ndim, offset) : NULL;
    }
    const int32_t rc = opdi_aoti_box(tensor, out);
    opd_scope_close(&scope);
    return rc;
}
static int32_t opdi_aoti_from_blob(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                                   int64_t offset, int32_t dtype, int32_t device, int32_t index, void **out) {
    (void)index;
    return opdi_aoti_wrap(data, ndim, sizes, strides, offset, dtype, device, NULL, NULL, out);
}

//== weights in blocks =================================================================================================
//
// When a model is compiled with its weights frozen, those of products and convolutions are stored as oneDNN wants them:
// in blocks of blocks, with a description of 768 bytes, and behind it how many groups there are.  They are unpacked.

enum { OPDI_AOTI_DIMS = 12 };
typedef struct opdi_aoti_blocks {
    int32_t ndim, kind, inner;
    int64_t dims[OPDI_AOTI_DIMS], padded[OPDI_AOTI_DIMS], strides[OPDI_AOTI_DIMS], offset;
    int64_t sizes[OPDI_AOTI_DIMS], which[OPDI_AOTI_DIMS];      /* of the inner blocks, the outermost first */
} opdi_aoti_blocks;
/* Reads the description; false: it is none that is known. */
static bool opdi_aoti_read_blocks(const uint8_t *bytes, int64_t count, opdi_aoti_blocks *blocks) {
    if (count < 768) { return false; }
    memcpy(&blocks->ndim, bytes + 4, 4);
    memcpy(blocks->dims, bytes + 8, 96);
    memcpy(blocks->padded, bytes + 112, 96);
    memcpy(&blocks->offset, bytes + 304, 8);
    memcpy(&blocks->kind, bytes + 312, 4);
    memcpy(blocks->strides, bytes + 320, 96);
    memcpy(&blocks->inner, bytes + 416, 4);
    memcpy(blocks->sizes, bytes + 424, 96);
    memcpy(blocks->which, bytes + 520, 96);
    if (blocks->kind != 2 || blocks->ndim < 1 || blocks->ndim > 6 || blocks->inner < 0 || blocks->inner > 12 ||
        blocks->offset < 0) {
        return false;
    }
    for (int i = 0; i < blocks->ndim; i++) {
        if (blocks->dims[i] < 1 || blocks->padded[i] < blocks->dims[i] || blocks->padded[i] > INT32_MAX ||
            blocks->strides[i] < 0 || blocks->strides[i] > INT64_MAX / 65536 / INT32_MAX) {
            return false;
        }
    }
    for (int i = 0; i < blocks->inner; i++) {
        if (blocks->sizes[i] < 1 || blocks->sizes[i] > 4096 || blocks->which[i] < 0 ||
            blocks->which[i] >= blocks->ndim) {
            return false;
        }
    }
    return true;
}
/* Where in the blocks the element at index is. */
static int64_t opdi_aoti_block_place(const opdi_aoti_blocks *blocks, const int64_t *index) {
    int64_t rest[OPDI_AOTI_DIMS], place = blocks->offset, step = 1;
    memcpy(rest, index, sizeof rest);
    for (int i = blocks->inner - 1; i >= 0; i--) {
        int64_t *at = &rest[blocks->which[i]];
        place += *at % blocks->sizes[i] * step;
        *at /= blocks->sizes[i];
        step *= blocks->sizes[i];
    }
    for (int i = 0; i < blocks->ndim; i++) { place += rest[i] * blocks->strides[i]; }
    return place;
}
/* Fills a tensor of dims with the elements from blocks. */
static void opdi_aoti_unpack(const opdi_aoti_blocks *blocks, const char *from, char *to, size_t element) {
    int64_t index[OPDI_AOTI_DIMS] = {0}, count = 1;
    for (int i = 0; i < blocks->ndim; i++) { count *= blocks->dims[i]; }
    for (int64_t k = 0; k < count; k++) {
        memcpy(to + (size_t)k * element, from + (size_t)opdi_aoti_block_place(blocks, index) * element, element);
        for (int i = blocks->ndim - 1; i >= 0 && ++index[i] == blocks->dims[i]; i--) { index[i] = 0; }
    }
}
static int32_t opdi_aoti_from_packed(void *data, int32_t dtype, const uint8_t *metadata, int64_t count, void **out) {
    const size_t element = opd_dtype_size((opd_scalar_type)dtype);
    opdi_aoti_blocks blocks;
    memset(&blocks, 0, sizeof blocks);
    if (!opdi_aoti_read_blocks(metadata, count, &blocks) || element == 0) {
        (void)opd_fail(OPD_ERROR_FILE, "a compiled model has weights that are packed in a way that is not known here "
                       "(compile it without \"freezing\")");
        return 1;
    }
    opd_scope scope = opd_scope_open();
    opd_tensor *tensor = opd_tensor_new(opd_ints_of(blocks.dims, blocks.ndim), (opd_scalar_type)dtype);
    if (tensor) { opdi_aoti_unpack(&blocks, (const char *)data, (char *)opd_data(tensor), element); }
    const int32_t rc = opdi_aoti_box(tensor, out);
    opd_scope_close(&scope);
    if (rc == 0) { ((opdi_aoti_handle *)*out)->packed = true; }
    return rc;
}
static int32_t opdi_aoti_from_blob_v2(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                                      int64_t offset, int32_t dtype, int32_t device, int32_t index, void **out,
                                      int32_t layout, const uint8_t *metadata, int64_t metadata_size) {
    if (layout == 3) { return opdi_aoti_from_packed(data, dtype, metadata, metadata_size, out); }
    if (layout != 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a compiled model asks for a tensor of layout %d: only strided ones are "
                       "here",
                       (int)layout);
        return 1;
    }
    return opdi_aoti_from_blob(data, ndim, sizes, strides, offset, dtype, device, index, out);
}
static int32_t opdi_aoti_clone(void *self, void **out) {
    opd_tensor *tensor = opdi_aoti_tensor(self);
    opd_scope scope = opd_scope_open();
    const int32_t rc = opdi_aoti_box(tensor ? opd_clone(tensor) : NULL, out);
    opd_scope_close(&scope);
    if (rc == 0) { ((opdi_aoti_handle *)*out)->packed = ((opdi_aoti_handle *)self)->packed; }
    return rc;
}
/* A copy of all that self spans, with its strides, also where they overlap. */
static int32_t opdi_aoti_clone_strides(void *self, void **out) {
    opd_tensor *tensor = opdi_aoti_tensor(self);
    if (!tensor) { return 1; }
    const int64_t span = opdi_aoti_span(opd_sizes(tensor), opd_strides(tensor), opd_ndim(tensor)), one = 1;
    opd_scope scope = opd_scope_open();
    opd_tensor *flat = opd_tensor_view(tensor, &span, &one, 1, opd_offset(tensor));
    opd_tensor *copy = flat ? opd_clone(flat) : NULL;
    const int32_t rc = opdi_aoti_box(copy ? opd_tensor_view(copy, opd_sizes(tensor), opd_strides(tensor),
                                                            opd_ndim(tensor), 0) : NULL, out);
    opd_scope_close(&scope);
    return rc;
}
static int32_t opdi_aoti_copy(void *self, void *src, int32_t non_blocking) {
    opd_tensor *to = opdi_aoti_tensor(self), *from = opdi_aoti_tensor(src);
    (void)non_blocking;
    if (!to || !from) { return 1; }
    opd_scope scope = opd_scope_open();
    (void)opd_copy_(to, from);
    opd_scope_close(&scope);
    return opdi_aoti_status();
}
static int32_t opdi_aoti_copy_to(void *src, void *dst) { return opdi_aoti_copy(dst, src, 0); }
static int32_t opdi_aoti_zero(void *self) {
    opd_tensor *tensor = opdi_aoti_tensor(self);
    if (!tensor) { return 1; }
    opd_scope scope = opd_scope_open();
    (void)opd_zero_(tensor);
    opd_scope_close(&scope);
    return opdi_aoti_status();
}
/* The number in a tensor of one element, as dtype. */
static int32_t opdi_aoti_item(void *self, void *out, int64_t dtype) {
    opd_tensor *tensor = opdi_aoti_tensor(self);
    if (tensor && opd_numel(tensor) != 1) {
        (void)opd_fail(OPD_ERROR_SHAPE, "a compiled model reads a number from a tensor of %lld elements",
                       (long long)opd_numel(tensor));
    }
    if (!opd_ok()) { return 1; }
    opd_scope scope = opd_scope_open();
    if (opd_dtype(tensor) != (opd_scalar_type)dtype) { tensor = opd_to_dtype(tensor, (opd_scalar_type)dtype); }
    const void *data = tensor ? opd_data(tensor) : NULL;
    if (data) { memcpy(out, data, opd_dtype_size((opd_scalar_type)dtype)); }
    opd_scope_close(&scope);
    return opdi_aoti_status();
}
static int32_t opdi_aoti_number(const void *number, opd_scalar_type dtype, void **out) {
    opd_scope scope = opd_scope_open();
    const int32_t rc = opdi_aoti_box(opd_tensor_from(number, opd_ints_of(NULL, 0), dtype), out);
    opd_scope_close(&scope);
    return rc;
}
/* An integer or bool of dtype, in the lowest bytes of bits. */
static int32_t opdi_aoti_from_bits(uint64_t bits, void **out, int64_t dtype) {
    return opdi_aoti_number(&bits, (opd_scalar_type)dtype, out);
}
static int32_t opdi_aoti_from_f32(float number, void **out) { return opdi_aoti_number(&number, OPD_FLOAT32, out); }
static int32_t opdi_aoti_from_f64(double number, void **out) { return opdi_aoti_number(&number, OPD_FLOAT64, out); }
typedef struct opdi_aoti_c64 { float re, im; } opdi_aoti_c64;
typedef struct opdi_aoti_c128 { double re, im; } opdi_aoti_c128;
static int32_t opdi_aoti_from_c64(opdi_aoti_c64 number, void **out) {
    return opdi_aoti_number(&number, OPD_COMPLEX64, out);
}
static int32_t opdi_aoti_from_c128(opdi_aoti_c128 number, void **out) {
    return opdi_aoti_number(&number, OPD_COMPLEX128, out);
}
static size_t opdi_aoti_dtype_size(int32_t dtype) { return opd_dtype_size((opd_scalar_type)dtype); }

//== checks, words, and what does nothing here =========================================================================

/* How C++ throws: found in the library that models are linked with. */
static struct {
    void *(*allocate)(size_t size);
    void (*throws)(void *exception, void *type, void (*destroy)(void *));
    void (*construct)(void *exception, const char *text);
    void (*destroy)(void *exception);
    void *type;
} opdi_aoti_cxx;

static void opdi_aoti_find(void *library, const char *name, void *out) {
    void *found = dlsym(library, name);
    memcpy(out, &found, sizeof found);
}
/* Looks for C++ in what a model has loaded; whether it is there. */
static bool opdi_aoti_find_cxx(void *library) {
    opdi_aoti_find(library, "__cxa_allocate_exception", &opdi_aoti_cxx.allocate);
    opdi_aoti_find(library, "_ZNSt13runtime_errorC1EPKc", &opdi_aoti_cxx.construct);
    opdi_aoti_find(library, "_ZNSt13runtime_errorD1Ev", &opdi_aoti_cxx.destroy);
    opdi_aoti_find(library, "_ZTISt13runtime_error", &opdi_aoti_cxx.type);
    opdi_aoti_find(library, "__cxa_throw", &opdi_aoti_cxx.throws);
    return opdi_aoti_cxx.allocate && opdi_aoti_cxx.construct && opdi_aoti_cxx.destroy && opdi_aoti_cxx.type &&
        opdi_aoti_cxx.throws;
}
/* A check of the model's that failed: an error, and out of the model. */
static void opdi_aoti_check(bool holds, const char *function, const char *file, uint32_t line, const char *text) {
    if (holds) { return; }
    (void)function;
    (void)file;
    (void)line;
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s", text ? text : "a check of the compiled model failed");
    if (opdi_aoti_current && !opdi_aoti_current->model->exceptions) { longjmp(*opdi_aoti_current->out, 1); }
    void *exception = opdi_aoti_cxx.allocate(2 * sizeof(void *));             /* as big as a runtime_error is */
    opdi_aoti_cxx.construct(exception, text ? text : "");
    opdi_aoti_cxx.throws(exception, opdi_aoti_cxx.type, opdi_aoti_cxx.destroy);
}
static void opdi_aoti_warn(const char *function, const char *file, uint32_t line, const char *text) {
    (void)function;
    (void)file;
    (void)line;
    opd_warn("%s", text ? text : "");
}
static void opdi_aoti_print(void *handle, const char *text) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    printf("[%s]\n", text ? text : "");
    if (tensor) { opd_print(tensor); }
}
static void opdi_aoti_save(void *handle, const char *name, const char *prefix, const char *kernel) {
    char path[400];
    opd_tensor *tensor = opdi_aoti_tensor(handle);
    snprintf(path, sizeof path, "%.100s_%.100s_%.100s.npy", prefix ? prefix : "", kernel ? kernel : "",
             name ? name : "");
    if (tensor) { (void)opd_npy_save(path, tensor); }
}
static int32_t opdi_aoti_check_finite(const char *name, void *handle) {
    opd_tensor *tensor = opdi_aoti_tensor(handle);
    if (!tensor) { return 1; }
    opd_scope scope = opd_scope_open();
    const bool finite = opd_item_i64(opd_all(opd_isfinite(tensor))) != 0;
    opd_scope_close(&scope);
    if (opd_ok() && !finite) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s of the compiled model has an infinity or a NaN",
                       name ? name : "a tensor");
    }
    return opdi_aoti_status();
}
/* Functions whose results are handles of things that are not here: NULL is given, and taken back. */
static int32_t opdi_aoti_none_1(void **out) {
    *out = NULL;
    return 0;
}
static int32_t opdi_aoti_none_2(uint64_t value, void **out) {
    (void)value;
    return opdi_aoti_none_1(out);
}
static int32_t opdi_aoti_none_3(const void *values, int64_t count, void **out) {
    (void)values;
    (void)count;
    return opdi_aoti_none_1(out);
}
static int32_t opdi_aoti_none_5(const char *name, void *keywords, const void *inputs, uint64_t count, void **out) {
    (void)name;
    (void)keywords;
    return opdi_aoti_none_3(inputs, (int64_t)count, out);
}
static int32_t opdi_aoti_nothing(void *handle) {
    (void)handle;
    return 0;
}
static int32_t opdi_aoti_zero_out(int32_t *out) {
    *out = 0;
    return 0;
}
/* In place of the C library's, for one name: models check their inputs if it is set. */
static char *opdi_aoti_getenv(const char *name) {
    static char one[] = "1";
    char *value = getenv(name);
    return !value && strcmp(name, "AOTI_RUNTIME_CHECK_INPUTS") == 0 ? one : value;
}

//== operators: calls with flat arguments of C =========================================================================
//
// What a function like aoti_torch_cpu_addmm_out takes follows from the operator's schema: results that are written to
// come first; a tensor is a handle, what is optional a pointer that may be NULL, a list a pointer and a count; behind
// them stand pointers for the results.  So one function reads the arguments of all, from the registers and the stack as
// the stub has stored them, by a row that is made of the schema when the model is loaded.

enum { OPDI_AOTI_ARGS = OPD_MAX_ARGS };
/* T tensor, O tensor that may be NULL, i integer, b bool, e number of a dtype, layout or format, d double, f float,
   s text, D device, G generator */
typedef struct opdi_aoti_param { char kind; bool optional, list, optional_items, out; } opdi_aoti_param;
typedef int (*opdi_aoti_compose)(const opd_value *args, void *const *handles, opd_value *rets);
struct opdi_aoti_row {
    const char *symbol;          /* as the model calls it */
    opd_op *op;                  /* or else: */
    opdi_aoti_compose compose;
    opdi_aoti_param params[OPDI_AOTI_ARGS];
    int order[OPDI_AOTI_ARGS];   /* of the arguments in C */
    int nparams, nrets;
    char rets[16];               /* T, i, b or d */
    bool returns;                /* results are given */
};

/* A word of a schema's type and what stands behind it. */
static bool opdi_aoti_read_type(const char **at, opdi_aoti_param *param) {
    static const char *const words[] = {"Tensor", "int", "SymInt", "float", "Scalar", "bool", "str", "ScalarType",
                                        "Layout", "MemoryFormat", "Device", "Generator", "float32", "Handle"};
    static const char kinds[] = "TiiddbseeeDGfO";
    const char *here = *at;
    size_t length = strspn(here, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    memset(param, 0, sizeof *param);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i]) == length && strncmp(here, words[i], length) == 0) { param->kind = kinds[i]; }
    }
    here += length;
    if (*here == '(') {                           /* Tensor(a!) */
        const char *end = strchr(here, ')');
        if (!end) { return false; }
        param->out = memchr(here, '!', (size_t)(end - here)) != NULL;
        here = end + 1;
    }
    if (*here == '?' && here[1] == '[') {
        param->optional_items = true;
        here++;
    }
    if (*here == '[') {
        here = strchr(here, ']');
        if (!here) { return false; }
        param->list = true;
        here++;
        if (*here == '(') {                       /* Tensor[](a!) */
            here = strchr(here, ')');
            if (!here) { return false; }
            here++;
        }
    }
    if (*here == '?') {
        param->optional = true;
        here++;
    }
    *at = here;
    return param->kind != 0;
}
/* Steps over an argument's name and default, behind the comma. */
static const char *opdi_aoti_next_arg(const char *at) {
    int depth = 0;
    for (char quote = 0; *at && (quote || depth || (*at != ',' && *at != ')')); at++) {
        if (quote) { quote = *at == quote ? (char)0 : quote; }
        else if (*at == '\'' || *at == '"') { quote = *at; }
        else { depth += (*at == '[' || *at == '(') - (*at == ']' || *at == ')'); }
    }
    return *at == ',' ? at + 1 : at;
}
/* Fills a row by a schema, "name.overload(...) -> ..."; false: it has a type that such functions do not take. */
static bool opdi_aoti_read_schema(opdi_aoti_row *row, const char *schema) {
    const char *at = strchr(schema, '(');
    bool keywords = false, outs = false;
    if (!at) { return false; }
    const char *end = schema + strcspn(schema, ".(");         /* of the name without overload */
    const bool inplace = end - schema > 2 && end[-1] == '_' && end[-2] != '_';
    for (at++; *at && *at != ')';) {
        while (*at == ' ') { at++; }
        if (*at == '*' && (at[1] == ',' || at[1] == ')')) {
            keywords = true;
            at = opdi_aoti_next_arg(at);
            continue;
        }
        if (row->nparams == OPDI_AOTI_ARGS || !opdi_aoti_read_type(&at, &row->params[row->nparams])) { return false; }
        row->params[row->nparams].out = row->params[row->nparams].out && keywords;
        outs = outs || row->params[row->nparams].out;
        row->nparams++;
        at = opdi_aoti_next_arg(at);
    }
    int n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < row->nparams; i++) {
            if (row->params[i].out == (pass == 0)) { row->order[n++] = i; }
        }
    }
    row->returns = !outs && !inplace;
    at = strstr(at, "->");
    for (at = at ? at + 2 : ""; *at && row->nrets < 16;) {
        opdi_aoti_param param;
        at += strspn(at, " (,");
        if (*at == ')' || !*at) { break; }
        if (!opdi_aoti_read_type(&at, &param) || param.list) { return !row->returns; }
        row->rets[row->nrets++] = param.kind;
        at += strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789 ");
    }
    return true;
}

/* The arguments of a call, as its stub has stored them. */
typedef struct opdi_aoti_args {
    const uint64_t *ints, *stack;
    const double *floats;
    int nints, nfloats;
    void *memory[2 * OPDI_AOTI_ARGS];             /* lists that were made */
    int nmemory;
} opdi_aoti_args;
#if defined(__x86_64__)
enum { OPDI_AOTI_INTS = 6, OPDI_AOTI_FLOATS = 8 };
#else
enum { OPDI_AOTI_INTS = 8, OPDI_AOTI_FLOATS = 8 };
#endif
static uint64_t opdi_aoti_word(opdi_aoti_args *args) {
    return args->nints < OPDI_AOTI_INTS ? args->ints[args->nints++] : *args->stack++;
}
static void *opdi_aoti_pointer(opdi_aoti_args *args) { return (void *)(uintptr_t)opdi_aoti_word(args); }
static double opdi_aoti_double(opdi_aoti_args *args) {
    double number;
    if (args->nfloats < OPDI_AOTI_FLOATS) { return args->floats[args->nfloats++]; }
    memcpy(&number, args->stack++, sizeof number);
    return number;
}
/* A float lies in the lower half. */
static double opdi_aoti_float(opdi_aoti_args *args) {
    const double word = opdi_aoti_double(args);
    float number;
    memcpy(&number, &word, sizeof number);
    return (double)number;
}
static void *opdi_aoti_memory(opdi_aoti_args *args, int64_t count, size_t element) {
    void *memory = count >= 0 && count < INT32_MAX ? calloc((size_t)count + 1, element) : NULL;
    if (memory) { args->memory[args->nmemory++] = memory; }
    else { (void)opdi_aoti_no_memory(); }
    return memory;
}
/* The value that a pointer to one leads to. */
static opd_value opdi_aoti_value_at(const opdi_aoti_param *param, const void *at, void **handle) {
    switch (param->kind) {
    case 'T':
        *handle = *(void *const *)at;
        return opd_value_tensor(*handle ? ((opdi_aoti_handle *)*handle)->tensor : NULL);
    case 'i': return opd_value_int(*(const int64_t *)at);
    case 'b': return opd_value_bool(*(const int32_t *)at != 0);
    case 'e': return opd_value_int(*(const int32_t *)at);
    case 's': return opd_value_str(*(const char *const *)at);
    case 'G': return opd_value_none();
    default: return opd_value_float(*(const double *)at);
    }
}
static opd_value opdi_aoti_tensor_list(opdi_aoti_args *args, const opdi_aoti_param *param, const void *data,
                                       int64_t count) {
    opd_tensor **list = (opd_tensor **)opdi_aoti_memory(args, count, sizeof *list);
    for (int64_t i = 0; list && i < count; i++) {
        void *handle = NULL;
        if (param->optional_items) {
            void *const *at = ((void *const *const *)data)[i];
            handle = at ? *at : NULL;
        } else { handle = ((void *const *)data)[i]; }
        list[i] = handle ? ((opdi_aoti_handle *)handle)->tensor : NULL;
        if (!list[i] && !param->optional_items && param->kind == 'T') { (void)opdi_aoti_tensor(handle); }
    }
    return opd_value_tensors(list, list ? count : 0);
}
static opd_value opdi_aoti_list(opdi_aoti_args *args, const opdi_aoti_param *param) {
    const void *data = opdi_aoti_pointer(args);
    const int64_t count = (int64_t)opdi_aoti_word(args);
    if (param->optional) {
        if (!data) { return opd_value_none(); }
        data = *(const void *const *)data;
    }
    if (param->kind == 'T') { return opdi_aoti_tensor_list(args, param, data, count); }
    if (param->kind == 'O') { return opdi_aoti_tensor_list(args, param, data, (uint32_t)count); }
    if (param->kind == 'i') { return opd_value_ints((const int64_t *)data, count); }
    if (param->kind == 'b') {
        bool *bools = (bool *)opdi_aoti_memory(args, count, sizeof *bools);
        for (int64_t i = 0; bools && i < count; i++) { bools[i] = ((const int32_t *)data)[i] != 0; }
        return opd_value_bools(bools, bools ? count : 0);
    }
    if (param->kind == 'd' && param->optional_items) {                        /* double ** */
        opd_value *items = (opd_value *)opdi_aoti_memory(args, count, sizeof *items);
        for (int64_t i = 0; items && i < count; i++) {
            const double *number = ((const double *const *)data)[i];
            items[i] = number ? opd_value_float(*number) : opd_value_none();
        }
        return opd_value_list(items, items ? count : 0);
    }
    if (param->kind == 'd') { return opd_value_floats((const double *)data, count); }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "a list of a kind that compiled models do not give");
    return opd_value_none();
}
/* Reads the next argument; *handle gets the handle of a tensor. */
static opd_value opdi_aoti_read(opdi_aoti_args *args, const opdi_aoti_param *param, void **handle) {
    if (param->list) { return opdi_aoti_list(args, param); }
    if (param->kind == 'D') {
        const uint64_t word = opdi_aoti_word(args);
        const int32_t index = (int32_t)opdi_aoti_word(args);
        if (param->optional && !word) { return opd_value_none(); }
        const int32_t number = param->optional ? *(const int32_t *)(uintptr_t)word : (int32_t)word;
        return opd_value_device(opdi_aoti_device(number, index));
    }
    if (param->optional) {
        const void *at = opdi_aoti_pointer(args);
        return at ? opdi_aoti_value_at(param, at, handle) : opd_value_none();
    }
    switch (param->kind) {
    case 'T':
        *handle = opdi_aoti_pointer(args);
        return opd_value_tensor(opdi_aoti_tensor(*handle));
    case 'O':
        *handle = opdi_aoti_pointer(args);
        return opd_value_tensor(*handle ? ((opdi_aoti_handle *)*handle)->tensor : NULL);
    case 'i': return opd_value_int((int64_t)opdi_aoti_word(args));
    case 'b': return opd_value_bool((opdi_aoti_word(args) & 255) != 0);
    case 'f': return opd_value_float(opdi_aoti_float(args));
    case 'e': return opd_value_int((int32_t)opdi_aoti_word(args));
    case 's': return opd_value_str((const char *)opdi_aoti_pointer(args));
    case 'G':
        (void)opdi_aoti_word(args);
        return opd_value_none();
    default: return opd_value_float(opdi_aoti_double(args));
    }
}
/* Stores a result behind a pointer; 0 or 1. */
static int32_t opdi_aoti_give(char kind, const opd_value *value, void *out) {
    if (!out) { return 0; }
    if (kind == 'T' && value->tag == OPD_TAG_TENSOR) { return opdi_aoti_box(value->u.t, (void **)out); }
    if (kind == 'T') { return opdi_aoti_new_undefined((void **)out); }
    if (kind == 'd') {
        const double number = value->tag == OPD_TAG_FLOAT ? value->u.d : (double)value->u.i;
        memcpy(out, &number, sizeof number);
    } else if (kind == 'b') { *(int32_t *)out = value->u.i != 0; }
    else { *(int64_t *)out = value->tag == OPD_TAG_NONE ? 0 : value->u.i; }
    return 0;
}
/* What the stubs of operators call. */
static int32_t opdi_aoti_operator(const opdi_aoti_row *row, const uint64_t *ints, const double *floats,
                                  const uint64_t *stack) {
    opd_value values[OPDI_AOTI_ARGS], rets[16];
    void *handles[OPDI_AOTI_ARGS];
    opdi_aoti_args args;
    int rc;
    if (!opd_ok()) { return 1; }
    memset(&args, 0, sizeof args);
    args.ints = ints;
    args.floats = floats;
    args.stack = stack;
    opd_scope scope = opd_scope_open();
    for (int i = 0; i < row->nparams; i++) {
        const int at = row->order[i];
        handles[at] = NULL;
        values[at] = opdi_aoti_read(&args, &row->params[at], &handles[at]);
    }
    for (int i = 0; i < 16; i++) { rets[i] = opd_value_none(); }
    rc = !opd_ok() ? -1 : row->compose ? row->compose(values, handles, rets)
        : opd_call_all(row->op, row->returns ? rets : NULL, values, row->nparams);
    for (int i = 0; rc == 0 && row->returns && i < row->nrets; i++) {
        rc = opdi_aoti_give(row->rets[i], &rets[i], opdi_aoti_pointer(&args));
    }
    opd_scope_close(&scope);
    for (int i = 0; i < args.nmemory; i++) { free(args.memory[i]); }
    return rc ? 1 : opdi_aoti_status();
}

//== operators that PyTorch has for oneDNN =============================================================================

typedef struct opdi_aoti_unary { const char *name; opd_tensor *(*apply)(opd_tensor *self); } opdi_aoti_unary;
static const opdi_aoti_unary opdi_aoti_unaries[] = {
    {"relu", opd_relu}, {"sigmoid", opd_sigmoid}, {"tanh", opd_tanh}, {"hardswish", opd_hardswish},
    {"hardsigmoid", opd_hardsigmoid}, {"swish", opd_silu}, {"silu", opd_silu}, {"abs", opd_abs}, {"exp", opd_exp},
    {"sqrt", opd_sqrt}, {"square", opd_square}, {"log", opd_log}, {"mish", opd_mish}
};
/* Applies what is written behind a product: a function by name, with its numbers and its way ("tanh" of gelu). */
static opd_tensor *opdi_aoti_apply(opd_tensor *self, const opd_value *name, const opd_value *numbers,
                                   const opd_value *way) {
    const opd_value *list = numbers->tag == OPD_TAG_LIST ? numbers->u.list : NULL;
    const char *text = name->tag == OPD_TAG_STR ? name->u.s : "none";
    const int count = list ? numbers->n : 0;
    if (!self || strcmp(text, "none") == 0 || !*text) { return self; }
    if (strcmp(text, "gelu") == 0) {
        return opd_gelu_full(self, way->tag == OPD_TAG_STR && strcmp(way->u.s, "tanh") == 0 ? "tanh" : "none");
    }
    if (strcmp(text, "leaky_relu") == 0 && count >= 1) { return opd_leaky_relu_full(self, list[0]); }
    if (strcmp(text, "elu") == 0 && count >= 1) {
        return opd_elu_full(self, list[0], opd_value_int(1), opd_value_int(1));
    }
    if ((strcmp(text, "hardtanh") == 0 || strcmp(text, "clamp") == 0) && count >= 2) {
        return opd_hardtanh_full(self, list[0], list[1]);
    }
    for (size_t i = 0; i < sizeof opdi_aoti_unaries / sizeof *opdi_aoti_unaries; i++) {
        if (strcmp(text, opdi_aoti_unaries[i].name) == 0) { return opdi_aoti_unaries[i].apply(self); }
    }
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "a compiled model asks for '%.40s' behind a product, which is not there", text);
    return NULL;
}
static opd_tensor *opdi_aoti_combine(opd_tensor *self, opd_tensor *other, const opd_value *name,
                                     const opd_value *alpha) {
    const char *text = name->tag == OPD_TAG_STR ? name->u.s : "";
    const opd_value factor = alpha->tag == OPD_TAG_NONE ? opd_value_int(1) : *alpha;
    if (strcmp(text, "add") == 0 || strcmp(text, "sum") == 0) { return opd_add_full(self, other, factor); }
    if (strcmp(text, "sub") == 0) { return opd_sub_full(self, other, factor); }
    if (strcmp(text, "mul") == 0) { return opd_mul(self, other); }
    if (strcmp(text, "div") == 0) { return opd_div(self, other); }
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "a compiled model asks for '%.40s' of two behind a product, which is not there",
                   text);
    return NULL;
}
static opd_tensor *opdi_aoti_arg(const opd_value *value) {
    return value->tag == OPD_TAG_TENSOR ? value->u.t : NULL;
}
static int opdi_aoti_return(opd_value *rets, opd_tensor *tensor) {
    rets[0] = opd_value_tensor(tensor);
    return tensor ? 0 : -1;
}
/* Whether dims are laid out with the channels last, as PyTorch tells it by strides. */
static bool opdi_aoti_channels_last(const opd_tensor *tensor) {
    const int ndim = opd_ndim(tensor);
    const int64_t *sizes = opd_sizes(tensor), *strides = opd_strides(tensor);
    int64_t least = 0;
    if ((ndim != 4 && ndim != 5) || strides[1] == 0) { return false; }
    for (int i = 0; i < ndim; i++) {
        const int dim = i == 0 ? 1 : i == ndim - 1 ? 0 : ndim - i;            /* 1, 3, 2, 0 */
        if (sizes[dim] == 0 || strides[dim] < least || (dim == 0 && least == strides[1])) { return false; }
        least = strides[dim] * (sizes[dim] > 1 ? sizes[dim] : 1);
    }
    return true;
}
/* Gives what a convolution returns the layout that its input has. */
static opd_tensor *opdi_aoti_laid_out(opd_tensor *self, const opd_tensor *like) {
    return !self ? NULL : opdi_aoti_channels_last(like)
        ? opd_contiguous_full(self, opd_ndim(self) == 4 ? 2 : 3) : opd_contiguous(self);
}
/* Takes the groups of a packed weight, [g, o/g, i/g, ...], together. */
static opd_tensor *opdi_aoti_ungrouped(opd_tensor *weight, void *handle, int ndim, bool transposed) {
    const bool packed = handle && ((opdi_aoti_handle *)handle)->packed;
    if (!packed) { return weight; }
    if (opd_ndim(weight) == ndim) { return transposed ? opd_transpose(weight, 0, 1) : weight; }
    if (transposed) { weight = opd_transpose(weight, 1, 2); }
    return opd_flatten_full(weight, 0, 1);
}
static opd_tensor *opdi_aoti_convolve(const opd_value *args, const opd_value *bias, const opd_value *rest,
                                      const opd_value *weight, void *handle, const opd_value *output_padding) {
    static const int64_t zeros[3] = {0, 0, 0};
    opd_tensor *input = args->u.t;
    opd_value values[9];
    opd_tensor *kernel = opdi_aoti_ungrouped(weight->u.t, handle, opd_ndim(input), output_padding != NULL);
    static opd_op *convolution;
    values[0] = *args;
    values[1] = opd_value_tensor(kernel);
    values[2] = *bias;
    values[3] = rest[1];
    values[4] = rest[0];
    values[5] = rest[2];
    values[6] = opd_value_bool(output_padding != NULL);
    values[7] = output_padding ? *output_padding : opd_value_ints(zeros, opd_ndim(input) - 2);
    values[8] = rest[3];
    return kernel ? opdi_aoti_laid_out(opd_call_op(OPD_OP(&convolution, "aten::convolution"), values, 9), input) : NULL;
}
static int opdi_aoti_conv_pointwise(const opd_value *args, void *const *handles, opd_value *rets) {
    opd_tensor *self = opdi_aoti_convolve(&args[0], &args[2], &args[3], &args[1], handles[1], NULL);
    return opdi_aoti_return(rets, opdi_aoti_apply(self, &args[7], &args[8], &args[9]));
}
static int opdi_aoti_conv_binary(const opd_value *args, void *const *handles, opd_value *rets) {
    opd_tensor *self = opdi_aoti_convolve(&args[0], &args[3], &args[4], &args[2], handles[2], NULL);
    if (self) { self = opdi_aoti_combine(self, args[1].u.t, &args[8], &args[9]); }
    return opdi_aoti_return(rets, opdi_aoti_laid_out(opdi_aoti_apply(self, &args[10], &args[11], &args[12]),
                                                     args[0].u.t));
}
/* other, the first argument, is written. */
static int opdi_aoti_conv_binary_inplace(const opd_value *args, void *const *handles, opd_value *rets) {
    opd_tensor *self = opdi_aoti_convolve(&args[1], &args[3], &args[4], &args[2], handles[2], NULL);
    if (self) { self = opdi_aoti_combine(self, args[0].u.t, &args[8], &args[9]); }
    self = opdi_aoti_apply(self, &args[10], &args[11], &args[12]);
    return opdi_aoti_return(rets, self ? opd_copy_(args[0].u.t, self) : NULL);
}
static int opdi_aoti_conv_transposed(const opd_value *args, void *const *handles, opd_value *rets) {
    opd_value rest[4];
    rest[0] = args[3];
    rest[1] = args[5];
    rest[2] = args[6];
    rest[3] = args[7];
    opd_tensor *self = opdi_aoti_convolve(&args[0], &args[2], rest, &args[1], handles[1], &args[4]);
    return opdi_aoti_return(rets, opdi_aoti_apply(self, &args[8], &args[9], &args[10]));
}
static int opdi_aoti_linear(const opd_value *args, void *const *handles, opd_value *rets) {
    (void)handles;
    opd_tensor *self = opd_linear_full(args[0].u.t, args[1].u.t, opdi_aoti_arg(&args[2]));
    return opdi_aoti_return(rets, opdi_aoti_apply(self, &args[3], &args[4], &args[5]));
}
static int opdi_aoti_linear_binary(const opd_value *args, void *const *handles, opd_value *rets) {
    const opd_value one = opd_value_int(1);
    (void)handles;
    opd_tensor *self = opd_linear_full(args[0].u.t, args[2].u.t, opdi_aoti_arg(&args[3]));
    return opdi_aoti_return(rets, self ? opdi_aoti_combine(self, args[1].u.t, &args[4], &one) : NULL);
}
static int opdi_aoti_mkl_linear(const opd_value *args, void *const *handles, opd_value *rets) {
    (void)handles;
    return opdi_aoti_return(rets, opd_linear_full(args[0].u.t, args[2].u.t, opdi_aoti_arg(&args[3])));
}
/* A packed weight of a recurrent layer, [1, 1, features, gates, outputs], as PyTorch has it: [gates * outputs,
   features] */
static opd_tensor *opdi_aoti_gates(opd_tensor *weight, void *handle) {
    static const int64_t order[5] = {0, 1, 3, 4, 2};
    int64_t sizes[2];
    if (!weight || !((opdi_aoti_handle *)handle)->packed || opd_ndim(weight) != 5) { return weight; }
    sizes[0] = opd_size(weight, 3) * opd_size(weight, 4);
    sizes[1] = opd_size(weight, 2);
    return opd_reshape(opd_permute(weight, opd_ints_of(order, 5)), opd_ints_of(sizes, 2));
}
/* One layer in one direction: input [steps, examples, features], mode 0 relu, 1 tanh, 2 LSTM, 3 GRU.  Its results are
   the outputs, both states at the end, and room for training, which is empty. */
static int opdi_aoti_rnn_layer(const opd_value *args, void *const *handles, opd_value *rets) {
    static const char *const names[] = {"aten::rnn_relu.input", "aten::rnn_tanh.input", "aten::lstm.input",
                                        "aten::gru.input"};
    static const int64_t first = 0, nothing = 0;
    const bool reverse = args[7].u.i != 0, biases = args[12].u.i != 0, batch_first = args[14].u.i != 0;
    const int64_t mode = args[9].u.i;
    opd_tensor *weights[4], *states[2], *input = args[0].u.t;
    opd_value values[9], results[3];
    if (mode < 0 || mode > 3) { return opd_fail(OPD_ERROR_ARGUMENT, "a recurrent layer of mode %d", (int)mode); }
    if (args[8].n > 0) { return opd_fail(OPD_ERROR_ARGUMENT, "a recurrent layer over packed sequences"); }
    for (int i = 0; i < 4; i++) { weights[i] = opdi_aoti_gates(args[1 + i].u.t, handles[1 + i]); }
    /* the state may be [examples, features] */
    for (int i = 0; i < 2; i++) {
        states[i] = args[5 + i].u.t;
        if (states[i] && opd_ndim(states[i]) == 2) { states[i] = opd_unsqueeze(states[i], 0); }
    }
    if (batch_first) { input = opd_transpose(input, 0, 1); }
    if (reverse) { input = opd_flip(input, opd_ints_of(&first, 1)); }
    values[0] = opd_value_tensor(input);
    values[1] = mode == 2 ? opd_value_tensors(states, 2) : opd_value_tensor(states[0]);
    values[2] = opd_value_tensors(weights, biases ? 4 : 2);
    values[3] = opd_value_bool(biases);
    values[4] = opd_value_int(1);
    values[5] = opd_value_float(0);
    values[6] = values[7] = values[8] = opd_value_bool(false);
    results[2] = opd_value_none();
    opd_op *op = opd_ok() ? opd_find(names[mode]) : NULL;
    if (!op || opd_call_all(op, results, values, 9)) { return -1; }
    opd_tensor *output = results[0].u.t;
    if (reverse) { output = opd_flip(output, opd_ints_of(&first, 1)); }
    if (batch_first) { output = opd_transpose(output, 0, 1); }
    rets[0] = opd_value_tensor(output ? opd_contiguous(output) : NULL);
    for (int i = 0; i < 2; i++) {
        opd_tensor *state = i < (mode == 2 ? 2 : 1) ? results[1 + i].u.t : args[6].u.t;
        if (i == 0 || mode == 2) { state = opd_reshape(state, opd_ints_of(opd_sizes(args[5 + i].u.t),
                                                                          opd_ndim(args[5 + i].u.t))); }
        rets[1 + i] = opd_value_tensor(state);
    }
    rets[3] = opd_value_tensor(opd_tensor_new(opd_ints_of(&nothing, 1), OPD_UINT8));
    return opd_ok() ? 0 : -1;
}
static int opdi_aoti_scatter(const opd_value *args, void *const *handles, opd_value *rets) {
    opd_value values[6];
    (void)handles;
    (void)rets;
    values[0] = args[0];
    values[1] = args[1];
    values[2] = args[2];
    values[3] = args[3];
    values[4] = args[4];
    return opd_call_all(opd_find("aten::scatter.src_out"), NULL, values, 5);
}
static int opdi_aoti_mm_plus_mm(const opd_value *args, void *const *handles, opd_value *rets) {
    (void)handles;
    (void)rets;
    opd_tensor *sum = opd_add(opd_mm(args[0].u.t, args[1].u.t), opd_mm(args[2].u.t, args[3].u.t));
    return sum && opd_copy_(args[4].u.t, sum) ? 0 : -1;
}

static int opdi_aoti_addmm_activation(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *addmm;
    (void)handles;
    opd_tensor *sum = opd_call_op(OPD_OP(&addmm, "aten::addmm"), args, 5);
    return opdi_aoti_return(rets, !sum ? NULL : args[5].u.i ? opd_gelu_full(sum, "tanh") : opd_relu(sum));
}
static int opdi_aoti_int_mm(const opd_value *args, void *const *handles, opd_value *rets) {
    (void)handles;
    (void)rets;
    opd_tensor *a = opd_to_dtype(args[0].u.t, OPD_INT32), *b = opd_to_dtype(args[1].u.t, OPD_INT32);
    opd_tensor *product = a && b ? opd_mm(a, b) : NULL;
    return product && opd_copy_(args[2].u.t, product) ? 0 : -1;
}
/* Rows of whole numbers, [n, k], each with a factor. */
static int opdi_aoti_int8_mm(const opd_value *args, void *const *handles, opd_value *rets) {
    (void)handles;
    opd_tensor *weight = opd_to_dtype(args[1].u.t, opd_dtype(args[0].u.t));
    opd_tensor *product = weight ? opd_mm(args[0].u.t, opd_t(weight)) : NULL;
    return opdi_aoti_return(rets, product ? opd_to_dtype(opd_mul(product, args[2].u.t), opd_dtype(args[0].u.t)) : NULL);
}
/* The gradient of masked_scatter by its source: what mask has of grad, and zeros behind it. */
static int opdi_aoti_masked_backward(const opd_value *args, void *const *handles, opd_value *rets) {
    int64_t count = 1, first = 0;
    (void)handles;
    for (int i = 0; i < args[2].n; i++) { count *= args[2].u.ints[i]; }
    opd_tensor *found = opd_masked_select(args[0].u.t, args[1].u.t);
    opd_tensor *all = found ? opd_zeros(opd_ints_of(&count, 1), opd_dtype(found)) : NULL;
    const int64_t there = all && opd_numel(found) < count ? opd_numel(found) : count;
    if (all && !opd_copy_(opd_narrow(all, 0, first, there), opd_narrow(found, 0, first, there))) { return -1; }
    return opdi_aoti_return(rets, all ? opd_view(all, opd_ints_of(args[2].u.ints, args[2].n)) : NULL);
}
static int opdi_aoti_set(const opd_value *args, void *const *handles, opd_value *rets) {
    (void)handles;
    (void)rets;
    return opd_tensor_set_data(args[0].u.t, args[1].u.t);
}
static int opdi_aoti_uniform(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *uniform;
    opd_value values[3];
    (void)handles;
    opd_tensor *like = opd_empty_like(args[0].u.t);
    values[0] = opd_value_tensor(like);
    values[1] = args[1];
    values[2] = args[2];
    return opdi_aoti_return(rets, like ? opd_call_op(OPD_OP(&uniform, "aten::uniform_"), values, 3) : NULL);
}
/* rand_like and randn_like, whose generator is the default one. */
static int opdi_aoti_rand_like(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *rand_like;
    opd_value values[6];
    (void)handles;
    values[0] = args[0];
    for (int i = 1; i < 6; i++) { values[i] = args[i + 1]; }
    return opdi_aoti_return(rets, opd_call_op(OPD_OP(&rand_like, "aten::rand_like"), values, 6));
}
static int opdi_aoti_randn_like(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *randn_like;
    opd_value values[6];
    (void)handles;
    values[0] = args[0];
    for (int i = 1; i < 6; i++) { values[i] = args[i + 1]; }
    return opdi_aoti_return(rets, opd_call_op(OPD_OP(&randn_like, "aten::randn_like"), values, 6));
}

/* Functions that are no operators of ATen, or have other arguments than these: by schemas of our own.  compose NULL:
   the    operator of that name is called with them. */
typedef struct opdi_aoti_other { const char *symbol, *schema; opdi_aoti_compose compose; } opdi_aoti_other;
static const opdi_aoti_other opdi_aoti_others[] = {
    {"aoti_torch_cpu__linear_pointwise",
     "linear(Tensor X, Tensor W, Tensor? B, str attr, Scalar?[] scalars, str? algorithm) -> Tensor", opdi_aoti_linear},
    {"aoti_torch_cpu__linear_pointwise_binary",
     "linear(Tensor X, Tensor other, Tensor W, Tensor? B, str attr) -> Tensor", opdi_aoti_linear_binary},
    {"aoti_torch_cpu__mkl_linear",
     "linear(Tensor X, Tensor W, Tensor origin, Tensor? B, int batch) -> Tensor", opdi_aoti_mkl_linear},
    {"aoti_torch_cpu_mkldnn__convolution_pointwise",
     "conv(Tensor X, Tensor W, Tensor? B, int[] padding, int[] stride, int[] dilation, int groups, str attr, "
     "Scalar?[] scalars, str? algorithm) -> Tensor", opdi_aoti_conv_pointwise},
    {"aoti_torch_cpu_mkldnn__convolution_pointwise_binary",
     "conv(Tensor X, Tensor other, Tensor W, Tensor? B, int[] padding, int[] stride, int[] dilation, int groups, "
     "str attr, Scalar? alpha, str? unary, Scalar?[] scalars, str? algorithm) -> Tensor", opdi_aoti_conv_binary},
    {"aoti_torch_cpu_mkldnn__convolution_pointwise_binary_",
     "conv(Tensor other, Tensor X, Tensor W, Tensor? B, int[] padding, int[] stride, int[] dilation, int groups, "
     "str attr, Scalar? alpha, str? unary, Scalar?[] scalars, str? algorithm) -> Tensor",
     opdi_aoti_conv_binary_inplace},
    {"aoti_torch_cpu_mkldnn__convolution_transpose_pointwise",
     "conv(Tensor X, Tensor W, Tensor? B, int[] padding, int[] output_padding, int[] stride, int[] dilation, "
     "int groups, str attr, Scalar?[] scalars, str? algorithm) -> Tensor", opdi_aoti_conv_transposed},
    {"aoti_torch_cpu_mkldnn_rnn_layer",
     "rnn(Tensor input, Tensor w0, Tensor w1, Tensor w2, Tensor w3, Tensor hx, Tensor cx, bool reverse, int[] sizes, "
     "int mode, int hidden, int layers, bool biases, bool bidirectional, bool batch_first, bool train) -> "
     "(Tensor, Tensor, Tensor, Tensor)", opdi_aoti_rnn_layer},
    {"aoti_torch_cpu__addmm_activation",
     "addmm(Tensor self, Tensor a, Tensor b, Scalar beta, Scalar alpha, bool gelu) -> Tensor",
         opdi_aoti_addmm_activation},
    {"aoti_torch_cpu__int_mm_out", "mm(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", opdi_aoti_int_mm},
    {"aoti_torch_cpu__weight_int8pack_mm", "mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor", opdi_aoti_int8_mm},
    {"aoti_torch_cpu_masked_scatter_backward",
     "masked(Tensor grad, Tensor mask, int[] sizes) -> Tensor", opdi_aoti_masked_backward},
    {"aoti_torch_cpu_set__source_Tensor", "set_(Tensor(a!) self, Tensor source) -> Tensor(a!)", opdi_aoti_set},
    {"aoti_torch_cpu_uniform",
     "uniform(Tensor self, float from, float to, Generator? generator) -> Tensor", opdi_aoti_uniform},
    {"aoti_torch_cpu_rand_like_generator",
     "like(Tensor self, Generator? generator, ScalarType? dtype, Layout? layout, "
     "Device? device, bool? pin, MemoryFormat? format) -> Tensor", opdi_aoti_rand_like},
    {"aoti_torch_cpu_randn_like_generator",
     "like(Tensor self, Generator? generator, ScalarType? dtype, Layout? layout, "
     "Device? device, bool? pin, MemoryFormat? format) -> Tensor", opdi_aoti_randn_like},
    {"aoti_torch_cpu__efficientzerotensor",
     "aten::zeros(int[] size, ScalarType? dtype, Layout? layout, Device? device, bool? pin) -> Tensor", NULL},
    {"aoti_torch_scatter_out",
     "scatter(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)", opdi_aoti_scatter},
    {"aoti_torch__mm_plus_mm_out",
     "mm(Tensor a, Tensor b, Tensor c, Tensor d, *, Tensor(a!) out) -> Tensor(a!)", opdi_aoti_mm_plus_mm},
    {"aoti_torch_scatter_reduce_out",
     "aten::scatter_reduce.two_out(Tensor self, int dim, Tensor index, Tensor src, str reduce, bool include_self, *, "
     "Tensor(a!) out) -> Tensor(a!)", NULL},
    {"aoti_torch_addmm_out",
     "aten::addmm.out(Tensor self, Tensor mat1, Tensor mat2, float32 beta, float32 alpha, *, Tensor(a!) out) -> Tensor",
     NULL},
    {"aoti_torch_bmm_out", "aten::bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor", NULL},
    {"aoti_torch_mm_out", "aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor", NULL},
    {"aoti_torch_nonzero", "aten::nonzero(Tensor self) -> Tensor", NULL},
    {"aoti_torch_repeat_interleave_Tensor",
     "aten::repeat_interleave.Tensor(Tensor repeats, int? size) -> Tensor", NULL},
    {"aoti_torch_view_as_real", "aten::view_as_real(Tensor self) -> Tensor", NULL},
    {"aoti_torch_view_dtype", "aten::view.dtype(Tensor self, ScalarType dtype) -> Tensor", NULL},
    {"aoti_torch__fft_c2c", "aten::_fft_c2c(Tensor self, int[] dim, int norm, bool forward) -> Tensor", NULL},
    {"aoti_torch__embedding_bag",
     "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale, Layout mode, bool sparse, "
     "Handle bare, bool last, Layout padding_idx) -> (Tensor, Tensor, Tensor, Tensor)", NULL},
    {"aoti_torch_convolution",
     "aten::convolution(Tensor input, Tensor weight, Handle bare, int[] stride, int[] padding, int[] dilation, "
     "bool transposed, int[] output_padding, int groups) -> Tensor", NULL},
    {"aoti_torch_index_put_out",
     "aten::index_put.out(Tensor self, Handle[] indices, Tensor values, bool accumulate, *, Tensor(a!) out) -> Tensor",
     NULL}
};

//== vector functions ==================================================================================================
//
// Models call functions of vectors by Sleef's names, Sleef_expf16_u10: the stub stores the vectors in memory, and loads
// the result from there.

typedef struct opdi_aoti_math {
    const char *name;
    float (*f32)(float x);
    double (*f64)(double x);
    float (*f32_2)(float x, float y);
    double (*f64_2)(double x, double y);
} opdi_aoti_math;
static const opdi_aoti_math opdi_aoti_maths[] = {
    {"exp", expf, exp, NULL, NULL}, {"tanh", tanhf, tanh, NULL, NULL}, {"log", logf, log, NULL, NULL},
    {"erf", erff, erf, NULL, NULL}, {"erfc", erfcf, erfc, NULL, NULL}, {"sin", sinf, sin, NULL, NULL},
    {"cos", cosf, cos, NULL, NULL}, {"tan", tanf, tan, NULL, NULL}, {"asin", asinf, asin, NULL, NULL},
    {"acos", acosf, acos, NULL, NULL}, {"atan", atanf, atan, NULL, NULL}, {"sinh", sinhf, sinh, NULL, NULL},
    {"cosh", coshf, cosh, NULL, NULL}, {"asinh", asinhf, asinh, NULL, NULL}, {"acosh", acoshf, acosh, NULL, NULL},
    {"atanh", atanhf, atanh, NULL, NULL}, {"exp2", exp2f, exp2, NULL, NULL}, {"expm1", expm1f, expm1, NULL, NULL},
    {"log2", log2f, log2, NULL, NULL}, {"log10", log10f, log10, NULL, NULL}, {"log1p", log1pf, log1p, NULL, NULL},
    {"lgamma", lgammaf, lgamma, NULL, NULL}, {"tgamma", tgammaf, tgamma, NULL, NULL}, {"cbrt", cbrtf, cbrt, NULL, NULL},
    {"sqrt", sqrtf, sqrt, NULL, NULL}, {"ceil", ceilf, ceil, NULL, NULL}, {"floor", floorf, floor, NULL, NULL},
    {"round", roundf, round, NULL, NULL}, {"rint", rintf, rint, NULL, NULL}, {"trunc", truncf, trunc, NULL, NULL},
    {"fabs", fabsf, fabs, NULL, NULL}, {"pow", NULL, NULL, powf, pow}, {"atan2", NULL, NULL, atan2f, atan2},
    {"hypot", NULL, NULL, hypotf, hypot}, {"fmod", NULL, NULL, fmodf, fmod},
    {"copysign", NULL, NULL, copysignf, copysign},
    {"nextafter", NULL, NULL, nextafterf, nextafter}, {"fdim", NULL, NULL, fdimf, fdim},
    {"fmax", NULL, NULL, fmaxf, fmax},
    {"fmin", NULL, NULL, fminf, fmin}
};
/* What a stub of a vector function hands over: which, and how many numbers of which size. */
typedef struct opdi_aoti_vector { const opdi_aoti_math *math; int count, element; } opdi_aoti_vector;

static void opdi_aoti_vector_run(void *first, const void *second, const opdi_aoti_vector *vector) {
    const opdi_aoti_math *math = vector->math;
    float *f = (float *)first;
    double *d = (double *)first;
    const float *f_2 = (const float *)second;
    const double *d_2 = (const double *)second;
    if (math->f32 && vector->element == 4) { for (int i = 0; i < vector->count; i++) { f[i] = math->f32(f[i]); } }
    else if (math->f64) { for (int i = 0; i < vector->count; i++) { d[i] = math->f64(d[i]); } }
    else if (vector->element == 4) { for (int i = 0; i < vector->count; i++) { f[i] = math->f32_2(f[i], f_2[i]); } }
    else { for (int i = 0; i < vector->count; i++) { d[i] = math->f64_2(d[i], d_2[i]); } }
}
/* Finds what a name like Sleef_expf16_u10 is; NULL: nothing here. */
static const opdi_aoti_math *opdi_aoti_vector_of(const char *name, int *count, int *element) {
    if (strncmp(name, "Sleef_", 6) != 0) { return NULL; }
    for (size_t i = 0; i < sizeof opdi_aoti_maths / sizeof *opdi_aoti_maths; i++) {
        const size_t length = strlen(opdi_aoti_maths[i].name);
        if (strncmp(name + 6, opdi_aoti_maths[i].name, length) != 0) { continue; }
        const char kind = name[6 + length];
        char *end;
        const long numbers = strtol(name + 7 + length, &end, 10);
        const long bytes = numbers * (kind == 'f' ? 4 : 8);
        if ((kind != 'f' && kind != 'd') || (*end && *end != '_') || strstr(end, "sve")) { continue; }
#if defined(__x86_64__)
        if (bytes != 16 && bytes != 32 && bytes != 64) { continue; }
#else
        if (bytes != 16) { continue; }
#endif
        *count = (int)numbers;
        *element = kind == 'f' ? 4 : 8;
        return &opdi_aoti_maths[i];
    }
    return NULL;
}

//== extensions: values on their stacks ================================================================================
//
// An extension's kernel gets a stack of 64-bit words, takes what the arguments own, and leaves its results there: a
// tensor is a handle, a list or string an object of ours, what is optional a cell on the heap or NULL.

typedef struct opdi_ext opdi_ext;
typedef void (*opdi_ext_fn)(uint64_t *stack, uint64_t nargs, uint64_t nrets);
/* Runs a kernel that may throw; what it has thrown, or NULL. */
typedef void *(*opdi_ext_call_fn)(opdi_ext_fn fn, uint64_t *stack, uint64_t nargs, uint64_t nrets);
typedef struct opdi_ext_list { uint64_t *words; size_t count, room; } opdi_ext_list;
typedef struct opdi_ext_text { size_t length; char *data; } opdi_ext_text;
/* What a kernel's schema says of its stack; kind S is a Scalar. */
typedef struct opdi_ext_signature {
    opdi_aoti_param args[OPD_MAX_ARGS], rets[OPD_MAX_ARGS];
    int nargs, nrets;
    char unknown[60];            /* a type that the stable interface does not hand over */
} opdi_ext_signature;
/* What an extension registers: kept until its code has run through, and then done at once. */
typedef struct opdi_ext_entry {
    struct opdi_ext_entry *next;
    opdi_ext *ext;
    char *text;                  /* a schema, or a kernel's operator */
    opdi_ext_fn fn;              /* NULL: a schema */
    uint32_t tags;
    bool builtin;                /* a schema that is here already */
    opdi_ext_signature *signature;                /* of a kernel; NULL: not known yet */
} opdi_ext_entry;
typedef struct opdi_ext_library {
    struct opdi_ext_library *next;
    opdi_ext *ext;
    opd_library_kind kind;
    char *ns, *key, *file;
    int line;
    opdi_ext_entry *entries;
    opd_library *library;
} opdi_ext_library;
struct opdi_ext {
    opd_aoti model;              /* its path and its two files */
    opdi_ext *next;
    opdi_ext_library *libraries;
    opd_library *derivatives;    /* what is registered for it beside what it registers */
    opdi_ext_call_fn call;
    int operators, skipped;      /* skipped: kernels for devices that are not here */
    int64_t holds;               /* who needs its code: itself while it is loaded, its kernels, its memory */
    bool committed;
};
static pthread_mutex_t opdi_ext_lock = PTHREAD_MUTEX_INITIALIZER, opdi_ext_load_lock = PTHREAD_MUTEX_INITIALIZER;
static opdi_ext *opdi_ext_first;
OPDI_AOTI_THREAD opdi_ext *opdi_ext_loading, *opdi_ext_running;

/* C++'s, for cells that one side makes and the other frees. */
static struct { void *(*make)(size_t bytes); void (*unmake)(void *memory); void *replace; } opdi_ext_heap;

static int32_t opdi_ext_cell_new(uint64_t **out) {
    *out = (uint64_t *)(opdi_ext_heap.make ? opdi_ext_heap.make(sizeof **out) : malloc(sizeof **out));
    return *out ? 0 : (int32_t)-opdi_aoti_no_memory();
}
static int32_t opdi_ext_cell_free(uint64_t *cell) {
    if (!cell) { return 1; }
    if (opdi_ext_heap.unmake) { opdi_ext_heap.unmake(cell); }
    else { free(cell); }
    return 0;
}
static int32_t opdi_ext_list_new(size_t room, void **out) {
    opdi_ext_list *list = (opdi_ext_list *)calloc(1, sizeof *list);
    *out = NULL;
    if (list && room < SIZE_MAX / sizeof *list->words) {
        list->words = (uint64_t *)calloc(room + 1, sizeof *list->words);
    }
    if (!list || !list->words) {
        free(list);
        return (int32_t)-opdi_aoti_no_memory();
    }
    list->room = room + 1;
    *out = list;
    return 0;
}
static int32_t opdi_ext_list_size(void *self, size_t *out) {
    const opdi_ext_list *list = (const opdi_ext_list *)self;
    *out = list ? list->count : 0;
    return list ? 0 : 1;
}
static int32_t opdi_ext_list_get(void *self, size_t i, uint64_t *out) {
    const opdi_ext_list *list = (const opdi_ext_list *)self;
    if (!list || i >= list->count) {
        (void)opd_fail(OPD_ERROR_INDEX, "an extension reads item %zu of a list of %zu", i, list ? list->count : 0);
        return 1;
    }
    *out = list->words[i];
    return 0;
}
static int32_t opdi_ext_list_set(void *self, size_t i, uint64_t word) {
    uint64_t before;
    if (opdi_ext_list_get(self, i, &before)) { return 1; }
    ((opdi_ext_list *)self)->words[i] = word;
    return 0;
}
static int32_t opdi_ext_list_push(void *self, uint64_t word) {
    opdi_ext_list *list = (opdi_ext_list *)self;
    if (!list) { return 1; }
    if (list->count == list->room) {
        uint64_t *words = (uint64_t *)realloc(list->words, 2 * list->room * sizeof *words);
        if (!words) { return (int32_t)-opdi_aoti_no_memory(); }
        list->words = words;
        list->room *= 2;
    }
    list->words[list->count++] = word;
    return 0;
}
static int32_t opdi_ext_list_free(void *self) {
    opdi_ext_list *list = (opdi_ext_list *)self;
    if (list) { free(list->words); }
    free(list);
    return 0;
}
static int32_t opdi_ext_text_new(const char *data, size_t length, void **out) {
    opdi_ext_text *text = length < SIZE_MAX - sizeof *text - 1 ? (opdi_ext_text *)malloc(sizeof *text + length + 1)
        : NULL;
    *out = text;
    if (!text) { return (int32_t)-opdi_aoti_no_memory(); }
    text->length = length;
    text->data = (char *)(text + 1);
    if (length) { memcpy(text->data, data, length); }
    text->data[length] = 0;
    return 0;
}
static int32_t opdi_ext_text_free(void *text) {
    free(text);
    return 0;
}
static int32_t opdi_ext_text_length(void *self, size_t *out) {
    const opdi_ext_text *text = (const opdi_ext_text *)self;
    *out = text ? text->length : 0;
    return text ? 0 : 1;
}
static int32_t opdi_ext_text_data(void *self, const char **out) {
    const opdi_ext_text *text = (const opdi_ext_text *)self;
    *out = text ? text->data : "";
    return text ? 0 : 1;
}
static int32_t opdi_ext_tensor_give(opd_tensor *tensor, void **out) {
    return tensor ? opdi_aoti_box(tensor, out) : opdi_aoti_new_undefined(out);
}
static opd_tensor *opdi_ext_tensor_take(void *handle) {
    return handle ? ((opdi_aoti_handle *)handle)->tensor : NULL;
}
/* Whose objects words point to: ours, or PyTorch's where it is PyTorch that calls our operators. */
typedef struct opdi_ext_side {
    int32_t (*list_new)(size_t room, void **out);
    int32_t (*list_size)(void *list, size_t *out);
    int32_t (*list_get)(void *list, size_t i, uint64_t *out);
    int32_t (*list_push)(void *list, uint64_t word);
    int32_t (*list_free)(void *list);
    int32_t (*text_new)(const char *data, size_t length, void **out);
    int32_t (*text_data)(void *text, const char **out);
    int32_t (*text_free)(void *text);
    int32_t (*cell_new)(uint64_t **out);
    int32_t (*cell_free)(uint64_t *cell);
    int32_t (*tensor_free)(void *handle);
    int32_t (*tensor_give)(opd_tensor *tensor, void **out);   /* NULL: one that is undefined */
    opd_tensor *(*tensor_take)(void *handle);
} opdi_ext_side;
static const opdi_ext_side opdi_ext_ours = {
    opdi_ext_list_new, opdi_ext_list_size, opdi_ext_list_get, opdi_ext_list_push, opdi_ext_list_free,
    opdi_ext_text_new, opdi_ext_text_data, opdi_ext_text_free, opdi_ext_cell_new, opdi_ext_cell_free,
    opdi_aoti_free_handle, opdi_ext_tensor_give, opdi_ext_tensor_take
};

/* Reads types up to the closing parenthesis into params; -1: there is one that is not known. */
static int opdi_ext_read_types(const char **from, opdi_aoti_param *params, bool named, char *unknown) {
    const char *at = *from;
    int count = 0;
    while (*at && *at != ')') {
        at += strspn(at, " ,");
        if (*at == '*' && (at[1] == ',' || at[1] == ')')) {
            at++;
            continue;
        }
        if (*at == ')' || !*at) { break; }
        const bool scalar = strncmp(at, "Scalar", 6) == 0 && at[6] != 'T';
        const char *type = at;
        if (count == OPD_MAX_ARGS || !opdi_aoti_read_type(&at, &params[count]) || *at == '[') {
            snprintf(unknown, 60, "%.*s", (int)(strcspn(type, " ,)") < 59 ? strcspn(type, " ,)") : 59), type);
            return -1;
        }
        if (scalar) { params[count].kind = 'S'; }
        count++;
        if (named) { at = opdi_aoti_next_arg(at); }
        else { at += strcspn(at, ",)"); }
    }
    *from = at;
    return count;
}
/* Reads a schema's text, "ns::name(...) -> ..."; false, and which type, where there is one that is not known. */
static bool opdi_ext_read_signature(const char *schema, opdi_ext_signature *signature) {
    const char *at = strchr(schema, '(');
    memset(signature, 0, sizeof *signature);
    if (!at) { return false; }
    at++;
    signature->nargs = opdi_ext_read_types(&at, signature->args, true, signature->unknown);
    at = signature->nargs >= 0 ? strstr(at, "->") : NULL;
    if (!at) { return false; }
    at += 2 + strspn(at + 2, " ");
    at += *at == '(';
    signature->nrets = opdi_ext_read_types(&at, signature->rets, false, signature->unknown);
    return signature->nrets >= 0;
}
static bool opdi_ext_signature_of(opd_op *op, opdi_ext_signature *signature) {
    char text[4000];
    const opd_schema *schema = opd_op_schema(op);
    if (!schema || opd_schema_print(schema, text, sizeof text) >= sizeof text) {
        (void)opd_fail(OPD_ERROR_SCHEMA, "%s has no schema, or one that is very long", opd_op_name(op));
        return false;
    }
    if (opdi_ext_read_signature(text, signature)) { return true; }
    (void)opd_fail(OPD_ERROR_SCHEMA, "%s: PyTorch's stable interface does not hand over '%s'", opd_op_name(op),
                   signature->unknown);
    return false;
}

static double opdi_ext_number(const opd_value *value) {
    return value->tag == OPD_TAG_FLOAT ? value->u.d : (double)value->u.i;
}
static opd_value opdi_ext_item(const opd_value *value, int i) {
    switch (value->tag) {
    case OPD_TAG_TENSORS: return opd_value_tensor(value->u.tensors[i]);
    case OPD_TAG_INTS: return opd_value_int(value->u.ints[i]);
    case OPD_TAG_FLOATS: return opd_value_float(value->u.floats[i]);
    case OPD_TAG_BOOLS: return opd_value_bool(value->u.bools[i]);
    default: return value->u.list[i];
    }
}
static uint64_t opdi_ext_give(const opdi_ext_side *side, const opdi_aoti_param *param, const opd_value *value);
static uint64_t opdi_ext_give_list(const opdi_ext_side *side, const opdi_aoti_param *param, const opd_value *value) {
    opdi_aoti_param item = *param;
    void *list;
    item.list = false;
    item.optional = param->optional_items;
    const int count = value->tag == OPD_TAG_NONE ? 0 : value->n;
    if (side->list_new((size_t)count, &list)) { return 0; }
    for (int i = 0; i < count; i++) {
        const opd_value one = opdi_ext_item(value, i);
        (void)side->list_push(list, opdi_ext_give(side, &item, &one));
    }
    return (uint64_t)(uintptr_t)list;
}
/* The word for a value, which owns what it points to; 0 with an error. */
static uint64_t opdi_ext_give(const opdi_ext_side *side, const opdi_aoti_param *param, const opd_value *value) {
    void *handle = NULL;
    uint64_t word = 0;
    if (param->optional) {
        opdi_aoti_param inner = *param;
        uint64_t *cell;
        inner.optional = false;
        if (value->tag == OPD_TAG_NONE || side->cell_new(&cell)) { return 0; }
        *cell = opdi_ext_give(side, &inner, value);
        return (uint64_t)(uintptr_t)cell;
    }
    if (param->list) { return opdi_ext_give_list(side, param, value); }
    switch (param->kind) {
    case 'T':
        (void)side->tensor_give(value->tag == OPD_TAG_TENSOR ? value->u.t : NULL, &handle);
        return (uint64_t)(uintptr_t)handle;
    case 'i': return (uint64_t)value->u.i;
    case 'b': return value->u.i != 0;
    case 'e': return (uint32_t)value->u.i;
    case 'd': {
        const double number = opdi_ext_number(value);
        memcpy(&word, &number, sizeof word);
        return word;
    }
    case 's':
        (void)side->text_new(value->u.s, strlen(value->u.s), &handle);
        return (uint64_t)(uintptr_t)handle;
    case 'D':
        word = (uint64_t)(uint32_t)opdi_aoti_device_number(value->u.device) << 32;
        return word | (uint32_t)(value->u.device.type == OPD_CPU ? -1 : value->u.device.index);
    default:
        (void)opd_fail(OPD_ERROR_ARGUMENT, "PyTorch's stable interface does not hand over a %s",
                       param->kind == 'S' ? "Scalar" : "Generator");
        return 0;
    }
}

/* What was taken from a stack, until the call is over. */
typedef struct opdi_ext_taken {
    struct opdi_ext_taken *next;
    const opdi_ext_side *side;
    void *handle, *text;
    opd_tensor *tensor;          /* of the handle */
} opdi_ext_taken;
static opdi_ext_taken *opdi_ext_keep(const opdi_ext_side *side, opdi_ext_taken **all, size_t bytes) {
    opdi_ext_taken *taken = (opdi_ext_taken *)calloc(1, sizeof *taken + bytes);
    if (!taken) {
        (void)opdi_aoti_no_memory();
        return NULL;
    }
    taken->next = *all;
    taken->side = side;
    *all = taken;
    return taken;
}
static void opdi_ext_give_back(opdi_ext_taken *all) {
    while (all) {
        opdi_ext_taken *next = all->next;
        if (all->handle) { (void)all->side->tensor_free(all->handle); }
        if (all->text) { (void)all->side->text_free(all->text); }
        free(all);
        all = next;
    }
}
static opd_value opdi_ext_take(const opdi_ext_side *side, const opdi_aoti_param *param, uint64_t word,
                               opdi_ext_taken **all);
/* A list of items as the value that they make together. */
static opd_value opdi_ext_list_value(const opdi_aoti_param *param, opd_value *items, int count) {
    void *memory = items + count;                 /* behind them there is as much again */
    for (int i = 0; i < count; i++) {
        switch (param->kind) {
        case 'T': ((opd_tensor **)memory)[i] = items[i].tag == OPD_TAG_TENSOR ? items[i].u.t : NULL; break;
        case 'd': ((double *)memory)[i] = opdi_ext_number(&items[i]); break;
        case 'b': ((bool *)memory)[i] = items[i].u.i != 0; break;
        default: ((int64_t *)memory)[i] = items[i].u.i; break;
        }
    }
    if (param->kind == 'T') { return opd_value_tensors((opd_tensor **)memory, count); }
    if (param->optional_items || strchr("sDGS", param->kind)) { return opd_value_list(items, count); }
    if (param->kind == 'd') { return opd_value_floats((const double *)memory, count); }
    if (param->kind == 'b') { return opd_value_bools((const bool *)memory, count); }
    return opd_value_ints((const int64_t *)memory, count);
}
static opd_value opdi_ext_take_list(const opdi_ext_side *side, const opdi_aoti_param *param, uint64_t word,
                                    opdi_ext_taken **all) {
    void *list = (void *)(uintptr_t)word;
    opdi_aoti_param item = *param;
    size_t count = 0;
    if (list && (side->list_size(list, &count) || count >= INT32_MAX / 64)) { count = 0; }
    opdi_ext_taken *taken = opdi_ext_keep(side, all, 2 * (count + 1) * sizeof(opd_value));
    opd_value *items = taken ? (opd_value *)(void *)(taken + 1) : NULL;
    item.list = false;
    item.optional = param->optional_items;
    for (size_t i = 0; items && i < count; i++) {
        uint64_t one = 0;
        items[i] = side->list_get(list, i, &one) ? opd_value_none() : opdi_ext_take(side, &item, one, all);
    }
    if (list) { (void)side->list_free(list); }
    else { (void)opd_fail(OPD_ERROR_ARGUMENT, "an extension gives a list that is NULL"); }
    return items ? opdi_ext_list_value(param, items, (int)count) : opd_value_none();
}
/* The value of a word, whose memory lives as long as what is taken. */
static opd_value opdi_ext_take(const opdi_ext_side *side, const opdi_aoti_param *param, uint64_t word,
                               opdi_ext_taken **all) {
    opdi_ext_taken *taken = NULL;
    const char *text = "";
    double number;
    if (param->optional) {
        opdi_aoti_param inner = *param;
        uint64_t *cell = (uint64_t *)(uintptr_t)word;
        inner.optional = false;
        if (!cell) { return opd_value_none(); }
        const uint64_t held = *cell;
        (void)side->cell_free(cell);
        return opdi_ext_take(side, &inner, held, all);
    }
    if (param->list) { return opdi_ext_take_list(side, param, word, all); }
    switch (param->kind) {
    case 'T':
        taken = opdi_ext_keep(side, all, 0);
        if (!taken) { return opd_value_none(); }
        taken->handle = (void *)(uintptr_t)word;
        taken->tensor = word ? side->tensor_take(taken->handle) : NULL;
        return opd_value_tensor(taken->tensor);
    case 'i': return opd_value_int((int64_t)word);
    case 'b': return opd_value_bool((word & 255) != 0);
    case 'e': return opd_value_int((int32_t)(uint32_t)word);
    case 'd':
        memcpy(&number, &word, sizeof number);
        return opd_value_float(number);
    case 's':
        taken = opdi_ext_keep(side, all, 0);
        if (taken) { taken->text = (void *)(uintptr_t)word; }
        if (word) { (void)side->text_data((void *)(uintptr_t)word, &text); }
        return opd_value_str(text);
    case 'D': return opd_value_device(opdi_aoti_device((int32_t)(word >> 32), (int32_t)(uint32_t)word));
    default:
        (void)opd_fail(OPD_ERROR_ARGUMENT, "PyTorch's stable interface does not hand over a %s",
                       param->kind == 'S' ? "Scalar" : "Generator");
        return opd_value_none();
    }
}

//== extensions: kernels ===============================================================================================

static void opdi_ext_hold(opdi_ext *ext) {
    (void)pthread_mutex_lock(&opdi_ext_lock);
    ext->holds++;
    (void)pthread_mutex_unlock(&opdi_ext_lock);
}
static void opdi_ext_free(opdi_ext *ext);
static void opdi_ext_let_go(opdi_ext *ext) {
    (void)pthread_mutex_lock(&opdi_ext_lock);
    const bool last = --ext->holds == 0;
    (void)pthread_mutex_unlock(&opdi_ext_lock);
    if (last) { opdi_ext_free(ext); }
}
static void opdi_ext_kernel_gone(void *user) { opdi_ext_let_go(((opdi_ext_entry *)user)->ext); }

/* Where in opdi_ext_code_call's function what was caught goes on. */
#if defined(__x86_64__)
enum { OPDI_EXT_LANDING = 24 };
#else
enum { OPDI_EXT_LANDING = 36 };
#endif

/* How exceptions are caught and read: from the libraries that the extension is linked with. */
static struct {
    void (*set_register)(void *context, int number, uintptr_t value);
    void (*set_place)(void *context, uintptr_t place);
    uintptr_t (*begin)(void *context);
    void *(*caught)(void *exception);
    void (*done)(void);
    void *(*type)(void);
    void *base;                  /* std::exception's type */
} opdi_ext_cxx;

/* What the unwinder asks of the frame that calls kernels: everything that arrives there is caught. */
static int opdi_ext_personality(int version, int actions, uint64_t kind, void *exception, void *context) {
    (void)kind;
    if (version != 1 || (actions & 8) || !opdi_ext_cxx.set_register) { return 8; }        /* go on */
    if (actions & 1) { return 6; }                                                        /* here */
    if (!(actions & 4)) { return 8; }
    opdi_ext_cxx.set_register(context, 0, (uintptr_t)exception);
    opdi_ext_cxx.set_place(context, opdi_ext_cxx.begin(context) + OPDI_EXT_LANDING);
    return 7;                                                                             /* there it goes on */
}
/* Asks C++ whether an object of type is a std::exception, and makes object point to that part of it. */
static bool opdi_ext_is_exception(void *type, void **object) {
    typedef bool (*catch_fn)(const void *self, const void *thrown, void **object, unsigned outer);
    catch_fn catches = NULL;
    if (!type || !opdi_ext_cxx.base) { return false; }
    void *const *table = *(void *const **)opdi_ext_cxx.base;
    memcpy(&catches, &table[4], sizeof catches);
    return catches(opdi_ext_cxx.base, type, object, 1);
}
/* Records what was thrown as an error, where none is pending, and frees it. */
static void opdi_ext_caught(void *exception) {
    typedef const char *(*what_fn)(const void *self);
    what_fn what = NULL;
    uint64_t kind;
    memcpy(&kind, exception, sizeof kind);
    void *object = (char *)exception + 32;                    /* behind the unwinder's own part */
    (void)opdi_ext_cxx.caught(exception);
    const bool plain = (kind & 255) == 0;                     /* not a second reference to one that is elsewhere */
    if (plain && opdi_ext_is_exception(opdi_ext_cxx.type(), &object)) {
        memcpy(&what, *(void *const **)object + 2, sizeof what);
    }
    const char *text = what ? what(object) : "it threw something that is no std::exception";
    size_t length = strlen(text);
    while (length && (text[length - 1] == '\n' || text[length - 1] == ' ')) { length--; }
    if (opd_ok()) { (void)opd_fail(OPD_ERROR_KERNEL, "%.*s", (int)(length < 1500 ? length : 1500), text); }
    opdi_ext_cxx.done();
}
/* Frees what words on a stack own. */
static void opdi_ext_drop(const opdi_aoti_param *params, int count, const uint64_t *stack) {
    opdi_ext_taken *taken = NULL;
    for (int i = 0; i < count; i++) { (void)opdi_ext_take(&opdi_ext_ours, &params[i], stack[i], &taken); }
    opdi_ext_give_back(taken);
}
/* Gives the results of a kernel to the call. */
static int opdi_ext_return(opd_call *call, const opdi_ext_signature *signature, const uint64_t *stack) {
    opdi_ext_taken *taken = NULL;
    for (int i = 0; i < signature->nrets; i++) {
        const opd_value value = opdi_ext_take(&opdi_ext_ours, &signature->rets[i], stack[i], &taken);
        if (opd_ok() && value.tag == OPD_TAG_NONE && signature->rets[i].kind == 'T' && !signature->rets[i].optional) {
            (void)opd_fail(OPD_ERROR_KERNEL, "the kernel returns an undefined tensor");
        }
        if (opd_ok()) { (void)opd_return_value(call, value); }
    }
    opdi_ext_give_back(taken);
    return opd_ok() ? 0 : -1;
}
/* The kernel of all operators of extensions. */
static int opdi_ext_kernel(opd_call *call) {
    opdi_ext_entry *entry = (opdi_ext_entry *)opd_call_user(call);
    opdi_ext_signature *signature = entry->signature, *own = NULL;
    uint64_t words[16], *stack = words;
    if (!signature) {                             /* its schema came later, from elsewhere */
        signature = own = (opdi_ext_signature *)malloc(sizeof *own);
        if (!own) { return opdi_aoti_no_memory(); }
        if (!opdi_ext_signature_of(opd_call_operator(call), own)) {
            free(own);
            return -1;
        }
    }
    const int nargs = signature->nargs, nrets = signature->nrets, count = nargs > nrets ? nargs : nrets;
    memset(words, 0, sizeof words);
    if (count > 16) { stack = (uint64_t *)calloc((size_t)count, sizeof *stack); }
    if (!stack) { (void)opdi_aoti_no_memory(); }
    for (int i = 0; i < nargs && opd_ok(); i++) {
        if (signature->args[i].kind == 'S' || (signature->args[i].kind == 'G' && !opd_arg_is_none(call, i))) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "PyTorch's stable interface does not hand over a %s",
                           signature->args[i].kind == 'S' ? "Scalar" : "Generator");
        }
    }
    if (opd_ok()) {
        opdi_ext *outer = opdi_ext_running;
        for (int i = 0; i < nargs; i++) {
            stack[i] = opdi_ext_give(&opdi_ext_ours, &signature->args[i], &opd_call_args(call)[i]);
        }
        opdi_ext_running = entry->ext;
        const bool called = opd_ok();
        void *exception = called ? entry->ext->call(entry->fn, stack, (uint64_t)nargs, (uint64_t)nrets) : NULL;
        opdi_ext_running = outer;
        if (exception) { opdi_ext_caught(exception); }
        else if (called && opd_ok()) { (void)opdi_ext_return(call, signature, stack); }
        else if (!called) { opdi_ext_drop(signature->args, nargs, stack); }
    }
    if (stack != words) { free(stack); }
    free(own);
    return opd_ok() ? 0 : -1;
}

//== extensions: what they call ========================================================================================

static char *opdi_ext_copy(const char *text) {
    char *copy = text ? (char *)malloc(strlen(text) + 1) : NULL;
    if (text && !copy) { (void)opdi_aoti_no_memory(); }
    return copy ? strcpy(copy, text) : NULL;
}
/* While the library's own code runs nothing may fail, as it would throw where nobody catches: what it registers is
   noted, and done afterwards. */
static int32_t opdi_ext_library_new(opd_library_kind kind, const char *ns, const char *key, const char *file,
                                    uint32_t line, opdi_ext_library **out) {
    opdi_ext *ext = opdi_ext_loading;
    opdi_ext_library *library = ext ? (opdi_ext_library *)calloc(1, sizeof *library) : NULL, **end;
    *out = library;
    if (!library) {
        (void)opd_fail(OPD_ERROR_REGISTER, "an extension registers operators after it was loaded");
        return ext ? 0 : 1;
    }
    library->ext = ext;
    library->kind = kind;
    library->ns = opdi_ext_copy(ns);
    library->key = opdi_ext_copy(key);
    library->file = opdi_ext_copy(file);
    library->line = (int)line;
    for (end = &ext->libraries; *end; end = &(*end)->next) {}
    *end = library;
    return 0;
}
static int32_t opdi_ext_init_impl(const char *ns, const char *key, const char *file, uint32_t line, void **out) {
    return opdi_ext_library_new(OPD_IMPL, ns, key, file, line, (opdi_ext_library **)out);
}
static int32_t opdi_ext_init_def(const char *ns, const char *file, uint32_t line, void **out) {
    return opdi_ext_library_new(OPD_DEF, ns, NULL, file, line, (opdi_ext_library **)out);
}
static int32_t opdi_ext_init_fragment(const char *ns, const char *file, uint32_t line, void **out) {
    return opdi_ext_library_new(OPD_FRAGMENT, ns, NULL, file, line, (opdi_ext_library **)out);
}
static int32_t opdi_ext_register(opdi_ext_library *library, const char *text, opdi_ext_fn fn, uint32_t tags) {
    opdi_ext_entry *entry, **end;
    if (!library || library->ext->committed) {
        (void)opd_fail(OPD_ERROR_REGISTER, "an extension registers '%.200s' after it was loaded", text ? text : "");
        return library ? 1 : 0;
    }
    entry = (opdi_ext_entry *)calloc(1, sizeof *entry);
    if (!entry) {
        (void)opdi_aoti_no_memory();
        return 0;
    }
    entry->ext = library->ext;
    entry->text = opdi_ext_copy(text ? text : "");
    entry->fn = fn;
    entry->tags = tags;
    for (end = &library->entries; *end; end = &(*end)->next) {}
    *end = entry;
    return 0;
}
static int32_t opdi_ext_def(void *library, const char *schema) {
    return opdi_ext_register((opdi_ext_library *)library, schema, NULL, 0);
}
/* Tags are handed over as bits of ours, but for those that are not here: 0. */
static int32_t opdi_ext_def_tags(void *library, const char *schema, const int32_t *tags, int32_t count) {
    uint32_t bits = 0;
    for (int32_t i = 0; i < count; i++) { bits |= (uint32_t)tags[i]; }
    return opdi_ext_register((opdi_ext_library *)library, schema, NULL, bits);
}
static int32_t opdi_ext_impl(void *library, const char *name, opdi_ext_fn fn, uint64_t version) {
    (void)version;
    return opdi_ext_register((opdi_ext_library *)library, name, fn, 0);
}
static int32_t opdi_ext_old_impl(void *library, const char *name, opdi_ext_fn fn) {
    return opdi_ext_register((opdi_ext_library *)library, name, fn, 0);
}
static int32_t opdi_ext_module(void *library, const char *module, const char *context) {
    (void)library;
    (void)module;
    (void)context;
    return 0;
}
/* Reads a file's first elements into a tensor: aten::from_file, which is no operator here. */
static const char opdi_ext_from_file_schema[] =
    "aten::from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor";
static int opdi_ext_from_file(const opd_value *args, opd_value *rets) {
    const int64_t size = args[2].tag == OPD_TAG_INT ? args[2].u.i : 0;
    const opd_scalar_type dtype = args[3].tag == OPD_TAG_INT ? (opd_scalar_type)args[3].u.i : OPD_FLOAT32;
    opd_tensor *tensor = opd_tensor_new(opd_ints_of(&size, 1), dtype);
    if (!tensor) { return -1; }
    if (args[1].tag != OPD_TAG_NONE && args[1].u.i) {
        return opd_fail(OPD_ERROR_ARGUMENT, "aten::from_file: memory is not shared with files here");
    }
    FILE *file = fopen(args[0].u.s, "rb");
    const size_t element = opd_dtype_size(dtype), count = (size_t)size;
    const bool whole = file && (count == 0 || fread(opd_data(tensor), element, count, file) == count);
    const int why = errno;
    if (file) { (void)fclose(file); }
    rets[0] = opd_value_tensor(tensor);
    return whole ? 0 : opd_fail(OPD_ERROR_FILE, "aten::from_file: %.400s: %s", args[0].u.s,
                                file ? "it has fewer elements than were asked for" : strerror(why));
}
/* Calls an operator with the arguments on a stack, where its results come. */
static int32_t opdi_ext_dispatch(const char *name, const char *overload, uint64_t *stack, uint64_t version) {
    opdi_ext_signature *signature = (opdi_ext_signature *)malloc(sizeof *signature);
    opd_value values[OPD_MAX_ARGS], rets[OPD_MAX_ARGS];
    opdi_ext_taken *taken = NULL;
    char full[300];
    (void)version;
    if (!signature) { return (int32_t)-opdi_aoti_no_memory(); }
    snprintf(full, sizeof full, "%.200s%s%.90s", name ? name : "", overload && *overload ? "." : "",
             overload ? overload : "");
    opd_op *op = opd_find_quiet(full);
    const bool file = !op && strcmp(full, "aten::from_file") == 0 &&
        opdi_ext_read_signature(opdi_ext_from_file_schema, signature);
    if (!file && (!(op = opd_find(full)) || !opdi_ext_signature_of(op, signature))) {
        free(signature);
        return 1;
    }
    opd_scope scope = opd_scope_open();
    for (int i = 0; i < signature->nargs; i++) {
        values[i] = opdi_ext_take(&opdi_ext_ours, &signature->args[i], stack[i], &taken);
    }
    for (int i = 0; i < OPD_MAX_ARGS; i++) { rets[i] = opd_value_none(); }
    if (opd_ok() && (file ? opdi_ext_from_file(values, rets)
                     : opd_call_all(op, rets, values, signature->nargs)) == 0) {
        for (int i = 0; i < signature->nrets; i++) {
            stack[i] = opdi_ext_give(&opdi_ext_ours, &signature->rets[i], &rets[i]);
        }
    }
    opd_scope_close(&scope);
    opdi_ext_give_back(taken);
    free(signature);
    return opdi_aoti_status();
}
static int32_t opdi_ext_old_dispatch(const char *name, const char *overload, uint64_t *stack) {
    return opdi_ext_dispatch(name, overload, stack, 0);
}
static const char *opdi_ext_no_text(void) { return NULL; }
static const char *opdi_ext_what(void) { return opd_ok() ? NULL : opd_error_message(); }
static int32_t opdi_ext_parse_device(const char *text, uint32_t *type, int32_t *index) {
    opd_device device;
    if (opd_device_parse(text ? text : "", &device)) { return 1; }
    *type = (uint32_t)opdi_aoti_device_number(device);
    *index = device.type == OPD_CPU ? -1 : device.index;
    return 0;
}
static int32_t opdi_ext_parallel_for(int64_t begin, int64_t end, int64_t grain,
                                     void (*body)(int64_t begin, int64_t end, void *user), void *user) {
    (void)grain;
    if (begin < end) { body(begin, end, user); }
    return 0;
}
static int32_t opdi_ext_thread(uint32_t *out) {
    *out = 0;
    return 0;
}
static int32_t opdi_ext_threads(uint32_t *out) {
    *out = 1;
    return 0;
}
static int32_t opdi_ext_requires_grad(void *handle, bool on) {
    opd_tensor *tensor = opdi_aoti_tensor(handle);
    if (tensor) { (void)opd_tensor_set_requires_grad(tensor, on); }
    return opdi_aoti_status();
}
/* Memory of an extension's, which holds the code that frees it. */
typedef struct opdi_ext_memory { opdi_ext *ext; void (*deleter)(void *data, void *user); void *user; } opdi_ext_memory;
static void opdi_ext_memory_free(void *data, void *user) {
    opdi_ext_memory *memory = (opdi_ext_memory *)user;
    memory->deleter(data, memory->user);
    if (memory->ext) { opdi_ext_let_go(memory->ext); }
    free(memory);
}
static int32_t opdi_ext_from_blob(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                                  int64_t offset, int32_t dtype, int32_t device, int32_t index, void **out,
                                  int32_t layout, const uint8_t *metadata, int64_t metadata_size,
                                  void (*deleter)(void *data, void *user), void *user) {
    opdi_ext_memory *memory = deleter ? (opdi_ext_memory *)malloc(sizeof *memory) : NULL;
    (void)index;
    (void)layout;
    (void)metadata;
    (void)metadata_size;
    if (deleter && !memory) { return (int32_t)-opdi_aoti_no_memory(); }
    if (memory) {
        memory->ext = opdi_ext_running;
        memory->deleter = deleter;
        memory->user = user;
        if (memory->ext) { opdi_ext_hold(memory->ext); }
    }
    return opdi_aoti_wrap(data, ndim, sizes, strides, offset, dtype, device, memory ? opdi_ext_memory_free : NULL,
                          memory, out);
}
/* What asks for a device that is not here. */
static int32_t opdi_ext_no_device(void) {
    (void)opd_fail(OPD_ERROR_ARGUMENT, "an extension asks for CUDA: only its kernels for the CPU run here");
    return 1;
}
static int32_t opdi_ext_no_generator(void) {
    (void)opd_fail(OPD_ERROR_ARGUMENT, "an extension asks for a generator, which is not handed over");
    return 1;
}
/* In place of CUDA's run-time library: no device. */
static int32_t opdi_ext_cuda(void) { return 100; }
static void *opdi_ext_cuda_null(void) { return NULL; }
/* A part of std::string that C++ libraries before gcc 13 lack, and that PyTorch brings along: length characters at
   place become those of text, which may lie in the same string; rest follow them. */
static void opdi_ext_string_replace(void *self, char *place, size_t length, const char *text, size_t count,
                                    size_t rest) {
    char small[200], *copy = count <= sizeof small ? small : (char *)malloc(count);
    (void)self;
    if (!copy) { abort(); }                       /* it may not throw */
    if (count) { memcpy(copy, text, count); }
    if (rest && length != count) { memmove(place + count, place + length, rest); }
    if (count) { memcpy(place, copy, count); }
    if (copy != small) { free(copy); }
}
#define OPDI_EXT_STRING_REPLACE "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm"
/* In place of the C library's, with which extensions look for functions of PyTorch's. */
static char opdi_ext_torch;
static void *opdi_ext_open(const char *name, int mode) {
    return name && (strstr(name, "libtorch") || strstr(name, "libc10")) ? (void *)&opdi_ext_torch : dlopen(name, mode);
}
static int opdi_ext_close(void *library) { return library == (void *)&opdi_ext_torch ? 0 : dlclose(library); }
static void *opdi_ext_symbol(void *library, const char *name);

//== functions by name =================================================================================================

/* PLAIN functions are jumped to; CONSTANT ones return a number; THIRD ones get it as third argument. */
typedef enum opdi_aoti_kind { OPDI_AOTI_PLAIN, OPDI_AOTI_CONSTANT, OPDI_AOTI_THIRD } opdi_aoti_kind;
typedef struct opdi_aoti_symbol {
    const char *name;
    opdi_aoti_kind kind;
    uint64_t number;
    opdi_aoti_fn fn;
} opdi_aoti_symbol;
#define OPDI_AOTI_FN(name, fn) {name, OPDI_AOTI_PLAIN, 0, (opdi_aoti_fn)fn}
static int32_t opdi_aoti_proxy(void *executor, int node, int nints, int64_t *ints, int ntensors, void **tensors);
static const opdi_aoti_symbol opdi_aoti_symbols[] = {
    {"aoti_torch_device_type_cpu", OPDI_AOTI_CONSTANT, 0, NULL},
    {"aoti_torch_device_type_cuda", OPDI_AOTI_CONSTANT, 1, NULL},
    {"aoti_torch_device_type_xpu", OPDI_AOTI_CONSTANT, 12, NULL},
    {"aoti_torch_device_type_mps", OPDI_AOTI_CONSTANT, 13, NULL},
    {"aoti_torch_device_type_meta", OPDI_AOTI_CONSTANT, 14, NULL},
    {"aoti_torch_device_type_privateuse1", OPDI_AOTI_CONSTANT, 20, NULL},
    {"aoti_torch_dtype_uint8", OPDI_AOTI_CONSTANT, 0, NULL}, {"aoti_torch_dtype_int8", OPDI_AOTI_CONSTANT, 1, NULL},
    {"aoti_torch_dtype_int16", OPDI_AOTI_CONSTANT, 2, NULL}, {"aoti_torch_dtype_int32", OPDI_AOTI_CONSTANT, 3, NULL},
    {"aoti_torch_dtype_int64", OPDI_AOTI_CONSTANT, 4, NULL}, {"aoti_torch_dtype_float16", OPDI_AOTI_CONSTANT, 5, NULL},
    {"aoti_torch_dtype_float32", OPDI_AOTI_CONSTANT, 6, NULL},
    {"aoti_torch_dtype_float64", OPDI_AOTI_CONSTANT, 7, NULL},
    {"aoti_torch_dtype_complex32", OPDI_AOTI_CONSTANT, 8, NULL},
    {"aoti_torch_dtype_complex64", OPDI_AOTI_CONSTANT, 9, NULL},
    {"aoti_torch_dtype_complex128", OPDI_AOTI_CONSTANT, 10, NULL},
    {"aoti_torch_dtype_bool", OPDI_AOTI_CONSTANT, 11, NULL},
    {"aoti_torch_dtype_bfloat16", OPDI_AOTI_CONSTANT, 15, NULL},
    {"aoti_torch_dtype_float8_e5m2", OPDI_AOTI_CONSTANT, 23, NULL},
    {"aoti_torch_dtype_float8_e4m3fn", OPDI_AOTI_CONSTANT, 24, NULL},
    {"aoti_torch_dtype_float8_e5m2fnuz", OPDI_AOTI_CONSTANT, 25, NULL},
    {"aoti_torch_dtype_float8_e4m3fnuz", OPDI_AOTI_CONSTANT, 26, NULL},
    {"aoti_torch_dtype_uint16", OPDI_AOTI_CONSTANT, 27, NULL},
    {"aoti_torch_dtype_uint32", OPDI_AOTI_CONSTANT, 28, NULL},
    {"aoti_torch_dtype_uint64", OPDI_AOTI_CONSTANT, 29, NULL},
    {"aoti_torch_dtype_float8_e8m0fnu", OPDI_AOTI_CONSTANT, 44, NULL},
    {"aoti_torch_dtype_float4_e2m1fn_x2", OPDI_AOTI_CONSTANT, 45, NULL},
    {"torch_dtype_float8_e8m0fnu", OPDI_AOTI_CONSTANT, 44, NULL},
    {"torch_dtype_float4_e2m1fn_x2", OPDI_AOTI_CONSTANT, 45, NULL},
    {"aoti_torch_layout_strided", OPDI_AOTI_CONSTANT, 0, NULL},
    {"aoti_torch_layout_sparse_coo", OPDI_AOTI_CONSTANT, 1, NULL},
    {"aoti_torch_layout_sparse_csr", OPDI_AOTI_CONSTANT, 2, NULL},
    {"aoti_torch_layout__mkldnn", OPDI_AOTI_CONSTANT, 3, NULL},
    {"aoti_torch_layout_sparse_csc", OPDI_AOTI_CONSTANT, 4, NULL},
    {"aoti_torch_layout_sparse_bsr", OPDI_AOTI_CONSTANT, 5, NULL},
    {"aoti_torch_layout_sparse_bsc", OPDI_AOTI_CONSTANT, 6, NULL},
    {"aoti_torch_layout_jagged", OPDI_AOTI_CONSTANT, 7, NULL},
    {"aoti_torch_memory_format_contiguous_format", OPDI_AOTI_CONSTANT, 0, NULL},
    {"aoti_torch_memory_format_preserve_format", OPDI_AOTI_CONSTANT, 1, NULL},
    {"aoti_torch_memory_format_channels_last", OPDI_AOTI_CONSTANT, 2, NULL},
    {"aoti_torch_memory_format_channels_last_3d", OPDI_AOTI_CONSTANT, 3, NULL},
    {"aoti_torch_abi_version", OPDI_AOTI_CONSTANT, (uint64_t)2 << 56 | (uint64_t)15 << 48, NULL},
    {"torch_tag_core", OPDI_AOTI_CONSTANT, OPD_OPTAG_CORE, NULL},
    {"torch_tag_cudagraph_unsafe", OPDI_AOTI_CONSTANT, 1 << 16, NULL},
    {"torch_tag_data_dependent_output", OPDI_AOTI_CONSTANT, OPD_OPTAG_DATA_DEPENDENT_OUTPUT, NULL},
    {"torch_tag_dynamic_output_shape", OPDI_AOTI_CONSTANT, OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE, NULL},
    {"torch_tag_flexible_layout", OPDI_AOTI_CONSTANT, OPD_OPTAG_FLEXIBLE_LAYOUT, NULL},
    {"torch_tag_generated", OPDI_AOTI_CONSTANT, OPD_OPTAG_GENERATED, NULL},
    {"torch_tag_inplace_view", OPDI_AOTI_CONSTANT, OPD_OPTAG_INPLACE_VIEW, NULL},
    {"torch_tag_maybe_aliasing_or_mutating", OPDI_AOTI_CONSTANT, OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING, NULL},
    {"torch_tag_needs_contiguous_strides", OPDI_AOTI_CONSTANT, 1 << 17, NULL},
    {"torch_tag_needs_exact_strides", OPDI_AOTI_CONSTANT, OPD_OPTAG_NEEDS_EXACT_STRIDES, NULL},
    {"torch_tag_needs_fixed_stride_order", OPDI_AOTI_CONSTANT, OPD_OPTAG_NEEDS_FIXED_STRIDE_ORDER, NULL},
    {"torch_tag_nondeterministic_bitwise", OPDI_AOTI_CONSTANT, OPD_OPTAG_NONDETERMINISTIC_BITWISE, NULL},
    {"torch_tag_nondeterministic_seeded", OPDI_AOTI_CONSTANT, OPD_OPTAG_NONDETERMINISTIC_SEEDED, NULL},
    {"torch_tag_out_variant", OPDI_AOTI_CONSTANT, 1 << 18, NULL},
    {"torch_tag_pointwise", OPDI_AOTI_CONSTANT, OPD_OPTAG_POINTWISE, NULL},
    {"torch_tag_pt2_compliant_tag", OPDI_AOTI_CONSTANT, OPD_OPTAG_PT2_COMPLIANT, NULL},
    {"torch_tag_reduction", OPDI_AOTI_CONSTANT, 1 << 19, NULL},
    {"torch_tag_view_copy", OPDI_AOTI_CONSTANT, OPD_OPTAG_VIEW_COPY, NULL},
    OPDI_AOTI_FN("aoti_torch_library_init_impl", opdi_ext_init_impl),
    OPDI_AOTI_FN("aoti_torch_library_init_def", opdi_ext_init_def),
    OPDI_AOTI_FN("aoti_torch_library_init_fragment", opdi_ext_init_fragment),
    OPDI_AOTI_FN("aoti_torch_library_impl", opdi_ext_old_impl),
    OPDI_AOTI_FN("torch_library_impl", opdi_ext_impl),
    OPDI_AOTI_FN("aoti_torch_library_def", opdi_ext_def),
    OPDI_AOTI_FN("torch_library_def_with_tags", opdi_ext_def_tags),
    OPDI_AOTI_FN("torch_library_set_python_module", opdi_ext_module),
    OPDI_AOTI_FN("aoti_torch_call_dispatcher", opdi_ext_old_dispatch),
    OPDI_AOTI_FN("torch_call_dispatcher", opdi_ext_dispatch),
    OPDI_AOTI_FN("torch_new_list_reserve_size", opdi_ext_list_new),
    OPDI_AOTI_FN("torch_list_size", opdi_ext_list_size),
    OPDI_AOTI_FN("torch_list_get_item", opdi_ext_list_get),
    OPDI_AOTI_FN("torch_list_set_item", opdi_ext_list_set),
    OPDI_AOTI_FN("torch_list_push_back", opdi_ext_list_push),
    OPDI_AOTI_FN("torch_delete_list", opdi_ext_list_free),
    OPDI_AOTI_FN("torch_new_string_handle", opdi_ext_text_new),
    OPDI_AOTI_FN("torch_delete_string", opdi_ext_text_free),
    OPDI_AOTI_FN("torch_string_length", opdi_ext_text_length),
    OPDI_AOTI_FN("torch_string_c_str", opdi_ext_text_data),
    OPDI_AOTI_FN("torch_new_stable_ivalue", opdi_ext_cell_new),
    OPDI_AOTI_FN("torch_delete_stable_ivalue", opdi_ext_cell_free),
    OPDI_AOTI_FN("torch_exception_get_what", opdi_ext_no_text),
    OPDI_AOTI_FN("torch_exception_get_what_without_backtrace", opdi_ext_what),
    OPDI_AOTI_FN("torch_parse_device_string", opdi_ext_parse_device),
    OPDI_AOTI_FN("torch_parallel_for", opdi_ext_parallel_for),
    OPDI_AOTI_FN("torch_get_thread_idx", opdi_ext_thread),
    OPDI_AOTI_FN("torch_get_num_threads", opdi_ext_threads),
    OPDI_AOTI_FN("torch_set_requires_grad", opdi_ext_requires_grad),
    OPDI_AOTI_FN("torch_from_blob", opdi_ext_from_blob),
    OPDI_AOTI_FN("dlopen", opdi_ext_open),
    OPDI_AOTI_FN("dlclose", opdi_ext_close),
    OPDI_AOTI_FN("dlsym", opdi_ext_symbol),
    OPDI_AOTI_FN("torch_c10_cuda_check_msg", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_get_current_cuda_blas_handle", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_set_current_cuda_stream", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_get_cuda_stream_from_pool", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_cuda_stream_synchronize", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_get_current_cuda_stream", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_create_cuda_guard", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_cuda_guard_set_index", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_create_cuda_stream_guard", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_cuda_caching_allocator_raw_alloc", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_cuda_caching_allocator_raw_delete", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_stream_native_handle", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_new_generator_handle", opdi_ext_no_generator),
    OPDI_AOTI_FN("torch_generator_get_device", opdi_ext_no_generator),
    OPDI_AOTI_FN(OPDI_EXT_STRING_REPLACE, opdi_ext_string_replace),
    OPDI_AOTI_FN("aoti_torch_delete_library_object", opdi_aoti_nothing),
    OPDI_AOTI_FN("torch_c10_cuda_free_error_msg", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_delete_cuda_guard", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_delete_cuda_stream_guard", opdi_aoti_nothing),
    OPDI_AOTI_FN("torch_delete_generator", opdi_aoti_nothing),
    {"aoti_torch_item_uint8", OPDI_AOTI_THIRD, OPD_UINT8, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_uint16", OPDI_AOTI_THIRD, OPD_UINT16, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_uint32", OPDI_AOTI_THIRD, OPD_UINT32, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_uint64", OPDI_AOTI_THIRD, OPD_UINT64, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_int8", OPDI_AOTI_THIRD, OPD_INT8, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_int16", OPDI_AOTI_THIRD, OPD_INT16, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_int32", OPDI_AOTI_THIRD, OPD_INT32, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_int64", OPDI_AOTI_THIRD, OPD_INT64, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_bool", OPDI_AOTI_THIRD, OPD_BOOL, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_float16", OPDI_AOTI_THIRD, OPD_FLOAT16, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_bfloat16", OPDI_AOTI_THIRD, OPD_BFLOAT16, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_float32", OPDI_AOTI_THIRD, OPD_FLOAT32, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_float64", OPDI_AOTI_THIRD, OPD_FLOAT64, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_complex64", OPDI_AOTI_THIRD, OPD_COMPLEX64, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_scalar_to_tensor_uint8", OPDI_AOTI_THIRD, OPD_UINT8, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_uint16", OPDI_AOTI_THIRD, OPD_UINT16, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_uint32", OPDI_AOTI_THIRD, OPD_UINT32, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_uint64", OPDI_AOTI_THIRD, OPD_UINT64, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_int8", OPDI_AOTI_THIRD, OPD_INT8, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_int16", OPDI_AOTI_THIRD, OPD_INT16, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_int32", OPDI_AOTI_THIRD, OPD_INT32, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_int64", OPDI_AOTI_THIRD, OPD_INT64, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_bool", OPDI_AOTI_THIRD, OPD_BOOL, (opdi_aoti_fn)opdi_aoti_from_bits},
    OPDI_AOTI_FN("aoti_torch_scalar_to_tensor_float32", opdi_aoti_from_f32),
    OPDI_AOTI_FN("aoti_torch_scalar_to_tensor_float64", opdi_aoti_from_f64),
    OPDI_AOTI_FN("aoti_torch_scalar_to_tensor_complex64", opdi_aoti_from_c64),
    OPDI_AOTI_FN("aoti_torch_scalar_to_tensor_complex128", opdi_aoti_from_c128),
    OPDI_AOTI_FN("aoti_torch_dtype_element_size", opdi_aoti_dtype_size),
    OPDI_AOTI_FN("aoti_torch_grad_mode_is_enabled", opdi_aoti_grad_mode),
    OPDI_AOTI_FN("aoti_torch_grad_mode_set_enabled", opdi_aoti_grad_mode_set),
    OPDI_AOTI_FN("aoti_torch_delete_tensor_object", opdi_aoti_free_handle),
    OPDI_AOTI_FN("aoti_torch_get_data_ptr", opdi_aoti_get_data),
    OPDI_AOTI_FN("torch_get_mutable_data_ptr", opdi_aoti_get_data),
    OPDI_AOTI_FN("torch_get_const_data_ptr", opdi_aoti_get_data),
    OPDI_AOTI_FN("aoti_torch_get_storage_size", opdi_aoti_get_storage_size),
    OPDI_AOTI_FN("aoti_torch_get_storage_numel", opdi_aoti_get_storage_numel),
    OPDI_AOTI_FN("aoti_torch_get_dim", opdi_aoti_get_dim), OPDI_AOTI_FN("aoti_torch_get_numel", opdi_aoti_get_numel),
    OPDI_AOTI_FN("aoti_torch_get_sizes", opdi_aoti_get_sizes), OPDI_AOTI_FN("aoti_torch_get_size", opdi_aoti_get_size),
    OPDI_AOTI_FN("aoti_torch_get_strides", opdi_aoti_get_strides),
    OPDI_AOTI_FN("aoti_torch_get_stride", opdi_aoti_get_stride),
    OPDI_AOTI_FN("aoti_torch_get_dtype", opdi_aoti_get_dtype),
    OPDI_AOTI_FN("aoti_torch_get_device_type", opdi_aoti_get_device_type),
    OPDI_AOTI_FN("aoti_torch_get_device_index", opdi_aoti_get_device_index),
    OPDI_AOTI_FN("aoti_torch_get_layout", opdi_aoti_get_layout),
    OPDI_AOTI_FN("aoti_torch_get_storage_offset", opdi_aoti_get_storage_offset),
    OPDI_AOTI_FN("aoti_torch_is_contiguous", opdi_aoti_is_contiguous),
    OPDI_AOTI_FN("aoti_torch_is_defined", opdi_aoti_is_defined),
    OPDI_AOTI_FN("torch_has_storage", opdi_aoti_is_defined),
    OPDI_AOTI_FN("aoti_torch_new_tensor_handle", opdi_aoti_new_handle),
    OPDI_AOTI_FN("aoti_torch_new_uninitialized_tensor", opdi_aoti_new_undefined),
    OPDI_AOTI_FN("aoti_torch_assign_tensors", opdi_aoti_assign),
    OPDI_AOTI_FN("aoti_torch_assign_tensors_out", opdi_aoti_assign_out),
    OPDI_AOTI_FN("aoti_torch__reinterpret_tensor", opdi_aoti_view),
    OPDI_AOTI_FN("aoti_torch_as_strided", opdi_aoti_as_strided),
    OPDI_AOTI_FN("aoti_torch_empty_strided", opdi_aoti_empty_strided),
    OPDI_AOTI_FN("aoti_torch_empty_strided_pinned", opdi_aoti_empty_strided),
    OPDI_AOTI_FN("aoti_torch__alloc_from_pool", opdi_aoti_from_pool),
    OPDI_AOTI_FN("aoti_torch_create_tensor_from_blob", opdi_aoti_from_blob),
    OPDI_AOTI_FN("aoti_torch_create_tensor_from_blob_v2", opdi_aoti_from_blob_v2),
    OPDI_AOTI_FN("aoti_torch_clone", opdi_aoti_clone),
    OPDI_AOTI_FN("aoti_torch_clone_preserve_strides", opdi_aoti_clone_strides),
    OPDI_AOTI_FN("aoti_torch_copy_", opdi_aoti_copy), OPDI_AOTI_FN("aoti_torch_tensor_copy_", opdi_aoti_copy_to),
    OPDI_AOTI_FN("aoti_torch_zero_", opdi_aoti_zero), OPDI_AOTI_FN("aoti_torch_check", opdi_aoti_check),
    OPDI_AOTI_FN("aoti_torch_warn", opdi_aoti_warn),
    OPDI_AOTI_FN("aoti_torch_check_inf_and_nan", opdi_aoti_check_finite),
    OPDI_AOTI_FN("aoti_torch_print_tensor_handle", opdi_aoti_print),
    OPDI_AOTI_FN("aoti_torch_save_tensor_handle", opdi_aoti_save),
    OPDI_AOTI_FN("aoti_torch_proxy_executor_call_function", opdi_aoti_proxy),
    OPDI_AOTI_FN("aoti_torch_int64_to_ivalue", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_str_to_ivalue", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_tensor_to_ivalue", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_strlist_to_ivalue", opdi_aoti_none_3),
    OPDI_AOTI_FN("aoti_record_function_start", opdi_aoti_none_5),
    OPDI_AOTI_FN("aoti_record_function_end", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_delete_c10_value_object", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_create_device_guard", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_delete_device_guard", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_device_guard_set_index", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_get_current_stream", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_delete_stream", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_stream_id", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_get_current_device_index", opdi_aoti_zero_out)
};

/* Finds the operator behind aoti_torch_cpu_add_Tensor: "aten::add.Tensor", where names and overloads may have
   underscores, too; NULL: there is none. */
static opd_op *opdi_aoti_find_operator(const char *symbol) {
    char name[300];
    const char *rest = strncmp(symbol, "aoti_torch_cpu_", 15) == 0 || strncmp(symbol, "aoti_torch_aten_", 16) == 0
        ? strchr(symbol + 11, '_') + 1 : NULL;
    const size_t length = rest ? strlen(rest) : 0;
    if (length == 0 || length > 200) { return NULL; }
    snprintf(name, sizeof name, "aten::%s", rest);
    opd_op *op = opd_find_quiet(name);
    for (size_t i = length; !op && i-- > 1;) {
        if (rest[i] != '_') { continue; }
        snprintf(name, sizeof name, "aten::%.*s.%s", (int)i, rest, rest + i + 1);
        op = opd_find_quiet(name);
    }
    return op;
}
/* Makes the row of an operator that a model asks for, which belongs to the model; NULL: there is none, or an error. */
static opdi_aoti_row *opdi_aoti_row_of(opd_aoti *model, const char *symbol) {
    const opdi_aoti_other *other = NULL;
    char text[2000], name[200];
    const char *schema = text;
    for (size_t i = 0; i < sizeof opdi_aoti_others / sizeof *opdi_aoti_others; i++) {
        if (strcmp(symbol, opdi_aoti_others[i].symbol) == 0) { other = &opdi_aoti_others[i]; }
    }
    opd_op *op = other ? NULL : opdi_aoti_find_operator(symbol);
    if (other) {
        schema = other->schema;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(schema, "("), schema);
        if (!other->compose) { op = opd_find_quiet(name); }
    } else if (op && (!opd_op_schema(op) || opd_schema_print(opd_op_schema(op), text, sizeof text) >= sizeof text)) {
        op = NULL;
    }
    if (!op && !(other && other->compose)) { return NULL; }
    opdi_aoti_row **rows = (opdi_aoti_row **)realloc(model->rows, (size_t)(model->nrows + 1) * sizeof *rows);
    opdi_aoti_row *row = rows ? (opdi_aoti_row *)calloc(1, sizeof *row) : NULL;
    if (rows) { model->rows = rows; }
    if (!row) {
        (void)opdi_aoti_no_memory();
        return NULL;
    }
    rows[model->nrows++] = row;
    row->op = op;
    row->compose = other ? other->compose : NULL;
    return opdi_aoti_read_schema(row, schema) ? row : NULL;
}

//== the library of stubs ==============================================================================================

typedef struct opdi_aoti_bytes { unsigned char *data; size_t length, room; bool failed; } opdi_aoti_bytes;
static void opdi_aoti_put(opdi_aoti_bytes *bytes, const void *data, size_t count) {
    if (bytes->length + count > bytes->room) {
        const size_t room = 2 * bytes->room + count + 256;
        unsigned char *more = bytes->failed ? NULL : (unsigned char *)realloc(bytes->data, room);
        if (!more) {
            bytes->failed = true;
            return;
        }
        bytes->data = more;
        bytes->room = room;
    }
    memcpy(bytes->data + bytes->length, data, count);
    bytes->length += count;
}
static void opdi_aoti_put_text(opdi_aoti_bytes *bytes, const char *code, size_t count) {
    opdi_aoti_put(bytes, code, count);
}
static void opdi_aoti_put_word(opdi_aoti_bytes *bytes, uint64_t word) { opdi_aoti_put(bytes, &word, 8); }
static void opdi_aoti_align(opdi_aoti_bytes *bytes, size_t align) {
    while (bytes->length % align && !bytes->failed) { opdi_aoti_put_text(bytes, "", 1); }
}
#define OPDI_AOTI_CODE(bytes, code) opdi_aoti_put_text(bytes, code, sizeof(code) - 1)

#if defined(__x86_64__)

/* push rbp; mov rbp, rsp; room for 6 integers and 8 doubles, which are stored; then opdi_aoti_operator(r11, integers,
   doubles, stack) */
static void opdi_aoti_code_common(opdi_aoti_bytes *code) {
    OPDI_AOTI_CODE(code, "\x55\x48\x89\xe5\x48\x83\xec\x70\x48\x89\x3c\x24\x48\x89\x74\x24\x08\x48\x89\x54\x24\x10");
    OPDI_AOTI_CODE(code, "\x48\x89\x4c\x24\x18\x4c\x89\x44\x24\x20\x4c\x89\x4c\x24\x28\xf2\x0f\x11\x44\x24\x30");
    OPDI_AOTI_CODE(code, "\xf2\x0f\x11\x4c\x24\x38\xf2\x0f\x11\x54\x24\x40\xf2\x0f\x11\x5c\x24\x48");
    OPDI_AOTI_CODE(code, "\xf2\x0f\x11\x64\x24\x50\xf2\x0f\x11\x6c\x24\x58\xf2\x0f\x11\x74\x24\x60");
    OPDI_AOTI_CODE(code, "\xf2\x0f\x11\x7c\x24\x68\x4c\x89\xdf\x48\x89\xe6\x48\x8d\x54\x24\x30\x48\x8d\x4d\x10");
    OPDI_AOTI_CODE(code, "\x48\xb8");
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)opdi_aoti_operator);
    OPDI_AOTI_CODE(code, "\xff\xd0\xc9\xc3");
}
/* mov r11, row; jmp to the common code, which is at 0 */
static void opdi_aoti_code_operator(opdi_aoti_bytes *code, const void *row) {
    OPDI_AOTI_CODE(code, "\xf3\x0f\x1e\xfa\x49\xbb");
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)row);
    OPDI_AOTI_CODE(code, "\xe9");
    const int32_t back = -(int32_t)(code->length + 4);
    opdi_aoti_put(code, &back, 4);
}
/* mov rax, fn; jmp rax; before it, for a third argument, mov rdx, number */
static void opdi_aoti_code_jump(opdi_aoti_bytes *code, opdi_aoti_fn fn, const uint64_t *third) {
    OPDI_AOTI_CODE(code, "\xf3\x0f\x1e\xfa");
    if (third) {
        OPDI_AOTI_CODE(code, "\x48\xba");
        opdi_aoti_put_word(code, *third);
    }
    OPDI_AOTI_CODE(code, "\x48\xb8");
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)fn);
    OPDI_AOTI_CODE(code, "\xff\xe0");
}
/* mov rax, number; ret */
static void opdi_aoti_code_constant(opdi_aoti_bytes *code, uint64_t number) {
    OPDI_AOTI_CODE(code, "\xf3\x0f\x1e\xfa\x48\xb8");
    opdi_aoti_put_word(code, number);
    OPDI_AOTI_CODE(code, "\xc3");
}
/* Stores two registers of 16, 32 or 64 bytes on an aligned stack, calls opdi_aoti_vector_run(first, second, vector),
   and loads the first. */
static void opdi_aoti_code_vector(opdi_aoti_bytes *code, const opdi_aoti_vector *vector) {
    const int bytes = vector->count * vector->element;
    OPDI_AOTI_CODE(code, "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x83\xe4\xc0\x48\x81\xec\x80\x00\x00\x00");
    if (bytes == 64) {
        OPDI_AOTI_CODE(code, "\x62\xf1\x7c\x48\x11\x04\x24\x62\xf1\x7c\x48\x11\x4c\x24\x01\xc5\xf8\x77");
    }
    else if (bytes == 32) { OPDI_AOTI_CODE(code, "\xc5\xfc\x11\x04\x24\xc5\xfc\x11\x4c\x24\x40\xc5\xf8\x77"); }
    else { OPDI_AOTI_CODE(code, "\x0f\x11\x04\x24\x0f\x11\x4c\x24\x40"); }
    OPDI_AOTI_CODE(code, "\x48\x89\xe7\x48\x8d\x74\x24\x40\x48\xba");
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)vector);
    OPDI_AOTI_CODE(code, "\x48\xb8");
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)opdi_aoti_vector_run);
    OPDI_AOTI_CODE(code, "\xff\xd0");
    if (bytes == 64) { OPDI_AOTI_CODE(code, "\x62\xf1\x7c\x48\x10\x04\x24"); }
    else if (bytes == 32) { OPDI_AOTI_CODE(code, "\xc5\xfc\x10\x04\x24"); }
    else { OPDI_AOTI_CODE(code, "\x0f\x10\x04\x24"); }
    OPDI_AOTI_CODE(code, "\xc9\xc3");
}
/* What .call is, opdi_ext_call_fn: the kernel is called from a frame that the unwinder knows, and what arrives there is
   returned.  push rbp; mov rbp, rsp; mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; call rax; xor eax, eax;
   from here: pop rbp; ret */
static void opdi_ext_code_call(opdi_aoti_bytes *code) {
    OPDI_AOTI_CODE(code, "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x89\xf8\x48\x89\xf7\x48\x89\xd6\x48\x89\xca");
    OPDI_AOTI_CODE(code, "\xff\xd0\x31\xc0\x5d\xc3");
}
/* How its frame looks: at entry, behind the push, behind the mov. */
static const char opdi_ext_frame_first[] = "\x01zPR\0\x01\x78\x10\x0a";
static const char opdi_ext_frame_entry[] = "\x0c\x07\x08\x90\x01";
static const char opdi_ext_frame_then[] = "\x45\x0e\x10\x86\x02\x43\x0d\x06";
enum { OPDI_AOTI_MACHINE = EM_X86_64, OPDI_AOTI_PAGE = 4096 };

#else

static void opdi_aoti_put_codes(opdi_aoti_bytes *code, const uint32_t *words, size_t count) {
    opdi_aoti_put(code, words, 4 * count);
}
/* stp x29, x30; 8 integers and 8 doubles are stored; then opdi_aoti_operator(x16, integers, doubles, stack) */
static void opdi_aoti_code_common(opdi_aoti_bytes *code) {
    static const uint32_t words[] = {
        0xa9b67bfd, 0x910003fd, 0xa90107e0, 0xa9020fe2, 0xa90317e4, 0xa9041fe6, 0x6d0507e0, 0x6d060fe2, 0x6d0717e4,
        0x6d081fe6, 0xaa1003e0, 0x910043e1, 0x910143e2, 0x910283e3, 0x58000090, 0xd63f0200, 0xa8ca7bfd, 0xd65f03c0};
    opdi_aoti_put_codes(code, words, sizeof words / sizeof *words);
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)opdi_aoti_operator);
}
/* bti c; ldr x16, row; b to the common code, which is at 0 */
static void opdi_aoti_code_operator(opdi_aoti_bytes *code, const void *row) {
    const uint32_t back = (uint32_t)-(int32_t)((code->length + 8) / 4) & 0x3ffffff;
    const uint32_t words[] = {0xd503245f, 0x58000070, 0x14000000 | back, 0xd503201f};
    opdi_aoti_put_codes(code, words, 4);
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)row);
}
/* bti c; (ldr x2, number;) ldr x16, fn; br x16 */
static void opdi_aoti_code_jump(opdi_aoti_bytes *code, opdi_aoti_fn fn, const uint64_t *third) {
    static const uint32_t plain[] = {0xd503245f, 0x58000070, 0xd61f0200, 0xd503201f};
    static const uint32_t more[] = {0xd503245f, 0x58000062, 0x58000090, 0xd61f0200};
    opdi_aoti_put_codes(code, third ? more : plain, 4);
    if (third) { opdi_aoti_put_word(code, *third); }
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)fn);
}
/* bti c; ldr x0, number; ret */
static void opdi_aoti_code_constant(opdi_aoti_bytes *code, uint64_t number) {
    static const uint32_t words[] = {0xd503245f, 0x58000060, 0xd65f03c0, 0xd503201f};
    opdi_aoti_put_codes(code, words, 4);
    opdi_aoti_put_word(code, number);
}
/* Stores two registers of 16 bytes, calls opdi_aoti_vector_run(first, second, vector), and loads the first. */
static void opdi_aoti_code_vector(opdi_aoti_bytes *code, const opdi_aoti_vector *vector) {
    static const uint32_t words[] = {
        0xd503245f, 0xa9bd7bfd, 0x910003fd, 0xad0087e0, 0x910043e0, 0x910083e1, 0x580000c2, 0x580000f0, 0xd63f0200,
        0x3dc007e0, 0xa8c37bfd, 0xd65f03c0};
    opdi_aoti_put_codes(code, words, sizeof words / sizeof *words);
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)vector);
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)opdi_aoti_vector_run);
}
/* What .call is, opdi_ext_call_fn: the kernel is called from a frame that the unwinder knows, and what arrives there is
   returned.  bti c; stp x29, x30; mov x29, sp; mov x16, x0; mov x0, x1; mov x1, x2; mov x2, x3; blr x16; mov x0, 0;
   from here: ldp x29, x30; ret */
static void opdi_ext_code_call(opdi_aoti_bytes *code) {
    static const uint32_t words[] = {0xd503245f, 0xa9bf7bfd, 0x910003fd, 0xaa0003f0, 0xaa0103e0, 0xaa0203e1,
                                     0xaa0303e2, 0xd63f0200, 0xd2800000, 0xa8c17bfd, 0xd65f03c0};
    opdi_aoti_put_codes(code, words, sizeof words / sizeof *words);
}
/* How its frame looks: at entry, behind the stp, behind the mov. */
static const char opdi_ext_frame_first[] = "\x01zPR\0\x04\x78\x1e\x0a";
static const char opdi_ext_frame_entry[] = "\x0c\x1f\x00";
static const char opdi_ext_frame_then[] = "\x42\x0e\x10\x9d\x02\x9e\x01\x41\x0d\x1d";
enum { OPDI_AOTI_MACHINE = EM_AARCH64, OPDI_AOTI_PAGE = 65536 };

#endif

/* A library in the making: code, names, symbols. */
typedef struct opdi_aoti_library {
    opdi_aoti_bytes code, names, symbols;
    uint32_t count;
    size_t call_at, call_size;   /* of the function that catches, where there is one */
    uint32_t needed[16];         /* names of libraries that it needs */
    int nneeded;
} opdi_aoti_library;

static uint32_t opdi_aoti_hash(const char *name) {
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        hash = (hash ^ (hash & 0xf0000000u) >> 24) & 0x0fffffffu;
    }
    return hash;
}
/* A symbol of this name for the code that comes next. */
static void opdi_aoti_name(opdi_aoti_library *library, const char *name) {
    Elf64_Sym symbol;
    opdi_aoti_align(&library->code, 16);
    memset(&symbol, 0, sizeof symbol);
    symbol.st_name = (uint32_t)library->names.length;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 1;
    symbol.st_value = library->code.length;                   /* from where the code begins, which is added later */
    symbol.st_size = 1;
    opdi_aoti_put(&library->names, name, strlen(name) + 1);
    opdi_aoti_put(&library->symbols, &symbol, sizeof symbol);
    library->count++;
}
static void opdi_aoti_put_dynamic(opdi_aoti_bytes *file, int64_t tag, uint64_t value) {
    opdi_aoti_put(file, &tag, 8);
    opdi_aoti_put(file, &value, 8);
}
static void opdi_aoti_segment(Elf64_Phdr *segment, uint32_t type, uint32_t flags, size_t at, size_t bytes) {
    memset(segment, 0, sizeof *segment);
    segment->p_type = type;
    segment->p_flags = flags;
    segment->p_offset = segment->p_vaddr = segment->p_paddr = at;
    segment->p_filesz = segment->p_memsz = bytes;
    segment->p_align = type == PT_LOAD ? OPDI_AOTI_PAGE : 16;
}
/* One bucket for two symbols, and their chains. */
static void opdi_aoti_put_hash(opdi_aoti_bytes *file, const opdi_aoti_library *library) {
    const uint32_t buckets = library->count / 2 + 1, heads[2] = {buckets, library->count};
    uint32_t *table = (uint32_t *)calloc(buckets + library->count, sizeof *table);
    if (!table) {
        file->failed = true;
        return;
    }
    for (uint32_t i = 1; i < library->count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, library->symbols.data + i * sizeof symbol, sizeof symbol);
        const uint32_t bucket = opdi_aoti_hash((const char *)library->names.data + symbol.st_name) % buckets;
        table[buckets + i] = table[bucket];
        table[bucket] = i;
    }
    opdi_aoti_put(file, heads, sizeof heads);
    opdi_aoti_put(file, table, (buckets + library->count) * sizeof *table);
    free(table);
}
enum { OPDI_EXT_FRAMES = 120 };
/* What the unwinder reads of the function that catches: a table of one place, and how its frame looks.  header, frames:
   where they begin in the file; code: where the code does.  The numbers are those of DWARF. */
static void opdi_ext_put_frames(opdi_aoti_bytes *file, const opdi_aoti_library *library, size_t code) {
    static const unsigned char kinds[4] = {1, 0x1b, 3, 0x3b};
    const size_t header = file->length, frames = header + 24, second = frames + 48;
    const size_t at = code + library->call_at;
    int32_t words[5];
    unsigned char room[96];
    memset(room, 0, sizeof room);
    words[0] = (int32_t)(frames - header - 4);
    words[1] = 1;
    words[2] = (int32_t)((int64_t)at - (int64_t)header);
    words[3] = (int32_t)(second - header);
    words[4] = 0;
    opdi_aoti_put(file, kinds, 4);
    opdi_aoti_put(file, words, 20);
    /* what is common: its length, 0, then what is at entry */
    const uint64_t catches = (uint64_t)(uintptr_t)opdi_ext_personality;
    const uint32_t first[2] = {44, 0};
    size_t used = 8;
    memcpy(room, first, 8);
    memcpy(room + used, opdi_ext_frame_first, sizeof opdi_ext_frame_first - 1);
    used += sizeof opdi_ext_frame_first;          /* and a 0: the next is a plain address */
    memcpy(room + used, &catches, 8);
    used += 8;
    room[used++] = 0x1b;
    memcpy(room + used, opdi_ext_frame_entry, sizeof opdi_ext_frame_entry - 1);
    /* the function: its length, the way back to what is common, where it is, how long, how its frame changes */
    const int32_t own[4] = {36, 52, (int32_t)((int64_t)at - (int64_t)(second + 8)), (int32_t)library->call_size};
    memcpy(room + 48, own, 16);
    memcpy(room + 65, opdi_ext_frame_then, sizeof opdi_ext_frame_then - 1);
    opdi_aoti_put(file, room, sizeof room);
}
/* Lays out the file: names and symbols, which are read; code, which is run; and the table that the loader writes. */
static void opdi_aoti_link(opdi_aoti_library *library, const char *name, opdi_aoti_bytes *file) {
    Elf64_Ehdr head;
    Elf64_Phdr segments[6];
    const uint64_t soname = library->names.length;
    opdi_aoti_put(&library->names, name, strlen(name) + 1);
    memset(&head, 0, sizeof head);
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_type = ET_DYN;
    head.e_machine = OPDI_AOTI_MACHINE;
    head.e_version = EV_CURRENT;
    head.e_phoff = sizeof head;
    head.e_ehsize = sizeof head;
    head.e_phentsize = sizeof *segments;
    head.e_phnum = 6;
    opdi_aoti_put(file, &head, sizeof head);
    opdi_aoti_put(file, segments, sizeof segments);           /* filled below */
    const size_t hash = file->length;
    opdi_aoti_put_hash(file, library);
    opdi_aoti_align(file, 16);
    const size_t symbols = file->length;
    opdi_aoti_put(file, library->symbols.data, library->symbols.length);
    const size_t names = file->length;
    opdi_aoti_put(file, library->names.data, library->names.length);
    opdi_aoti_align(file, 8);
    const size_t frames = file->length;
    const size_t behind = (frames + OPDI_EXT_FRAMES + OPDI_AOTI_PAGE - 1) / OPDI_AOTI_PAGE * OPDI_AOTI_PAGE;
    if (library->call_size) { opdi_ext_put_frames(file, library, behind); }
    while (file->length < frames + OPDI_EXT_FRAMES && !file->failed) { opdi_aoti_put_text(file, "", 1); }
    const size_t read_end = file->length;
    opdi_aoti_align(file, OPDI_AOTI_PAGE);
    const size_t code = file->length;
    opdi_aoti_put(file, library->code.data, library->code.length);
    const size_t code_end = file->length;
    opdi_aoti_align(file, OPDI_AOTI_PAGE);
    const size_t dynamic = file->length;
    for (int i = 0; i < library->nneeded; i++) { opdi_aoti_put_dynamic(file, DT_NEEDED, library->needed[i]); }
    opdi_aoti_put_dynamic(file, DT_SONAME, soname);
    opdi_aoti_put_dynamic(file, DT_HASH, hash);
    opdi_aoti_put_dynamic(file, DT_SYMTAB, symbols);
    opdi_aoti_put_dynamic(file, DT_STRTAB, names);
    opdi_aoti_put_dynamic(file, DT_STRSZ, library->names.length);
    opdi_aoti_put_dynamic(file, DT_SYMENT, sizeof(Elf64_Sym));
    opdi_aoti_put_dynamic(file, DT_NULL, 0);
    if (file->failed || library->names.failed || library->code.failed || library->symbols.failed) {
        (void)opdi_aoti_no_memory();
        return;
    }
    opdi_aoti_segment(&segments[0], PT_LOAD, PF_R, 0, read_end);
    opdi_aoti_segment(&segments[1], PT_LOAD, PF_R | PF_X, code, code_end - code);
    opdi_aoti_segment(&segments[2], PT_LOAD, PF_R | PF_W, dynamic, file->length - dynamic);
    opdi_aoti_segment(&segments[3], PT_DYNAMIC, PF_R | PF_W, dynamic, file->length - dynamic);
    opdi_aoti_segment(&segments[4], PT_GNU_STACK, PF_R | PF_W, 0, 0);
    opdi_aoti_segment(&segments[5], library->call_size ? PT_GNU_EH_FRAME : PT_NULL, PF_R, frames, OPDI_EXT_FRAMES);
    memcpy(file->data + sizeof head, segments, sizeof segments);
    for (uint32_t i = 1; i < library->count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, file->data + symbols + i * sizeof symbol, sizeof symbol);
        symbol.st_value += code;
        memcpy(file->data + symbols + i * sizeof symbol, &symbol, sizeof symbol);
    }
}

//== libraries as files in memory ======================================================================================

static int opdi_aoti_bad(const opd_aoti *model, const char *text) {
    return opd_fail(OPD_ERROR_FILE, "%s: %.400s: %.900s", model->who, model->path, text);
}
static int opdi_aoti_write(int fd, const unsigned char *data, size_t count) {
    while (count) {
        const ssize_t written = write(fd, data, count < 1u << 30 ? count : 1u << 30);
        if (written < 0 && errno == EINTR) { continue; }
        if (written <= 0) { return -1; }
        data += written;
        count -= (size_t)written;
    }
    return 0;
}
/* A path of the descriptor that no other image has had: the loader takes two files of one path for one.  `//` and `/.`
   are the digits of a number. */
static void opdi_aoti_fd_path(char *path, size_t cap, int fd) {
    static uint32_t images;
    uint32_t number = OPDI_AOTI_NEXT(images);
    char digits[65], *at = digits;
    for (int i = 0; i < 32; i++, number >>= 1) {
        *at++ = '/';
        *at++ = number & 1 ? '.' : '/';
    }
    *at = 0;
    snprintf(path, cap, "/proc/self/fd%s/%d", digits, fd);
}
/* A file of these bytes that can be loaded: in memory, or where that is not allowed in a folder for temporary files. */
static int opdi_aoti_image_new(opd_aoti *model, opdi_aoti_image *image, const unsigned char *data, size_t count,
                               bool in_memory) {
    image->temporary = !in_memory;
    if (in_memory) {
#if defined(SYS_memfd_create)
        image->fd = (int)syscall(SYS_memfd_create, "opdispatch_aoti", 1u);        /* closed in children */
        if (image->fd >= 0) { opdi_aoti_fd_path(image->path, sizeof image->path, image->fd); }
#endif
    } else {
        const char *folder = getenv("TMPDIR");
        snprintf(image->path, sizeof image->path, "%.120s/opd_aoti.XXXXXX", folder && *folder ? folder : "/tmp");
        image->fd = mkstemp(image->path);
    }
    if (image->fd >= 0 && opdi_aoti_write(image->fd, data, count) == 0) { return 0; }
    return in_memory ? -1 : opdi_aoti_bad(model, "there is no room for a copy of the library in a temporary file");
}
static void opdi_aoti_image_free(opdi_aoti_image *image) {
    if (image->handle) { (void)dlclose(image->handle); }
    if (image->fd >= 0) { (void)close(image->fd); }
    if (image->temporary && image->path[0]) { (void)unlink(image->path); }
    image->handle = NULL;
    image->fd = -1;
    image->path[0] = 0;
}
/* Makes such a file and loads it; 0, or -1 with an error. */
static int opdi_aoti_image_load(opd_aoti *model, opdi_aoti_image *image, const unsigned char *data, size_t count) {
    const char *why = NULL;
    for (int pass = 0; pass < 2 && opd_ok(); pass++) {
        if (opdi_aoti_image_new(model, image, data, count, pass == 0) == 0 &&
            (image->handle = dlopen(image->path, RTLD_NOW | RTLD_LOCAL)) != NULL) {
            return 0;
        }
        why = opd_ok() && image->fd >= 0 ? dlerror() : NULL;
        /* what the loader misses is missing in the other file, too */
        if (why && (strstr(why, "undefined symbol") || strstr(why, "version `") ||
                    strstr(why, "cannot open shared object file: No such file") != NULL)) {
            const char *text = strstr(why, ": ");
            (void)opdi_aoti_bad(model, text && strncmp(why, "/proc/", 6) == 0 ? text + 2 : why);
        }
        opdi_aoti_image_free(image);
    }
    return opd_ok() ? opdi_aoti_bad(model, why ? why : "it cannot be loaded") : -1;
}

//== the model's library: checked, and directed to ours ================================================================

typedef struct opdi_aoti_elf {
    opd_aoti *model;
    unsigned char *data;         /* of our own: it is changed */
    size_t size;
    Elf64_Phdr segments[64];
    int nsegments;
    Elf64_Dyn *dynamic;
    size_t ndynamic;
    char *names;
    size_t names_size;
    Elf64_Sym *symbols;
    uint16_t *versions;          /* of symbols, or NULL */
    size_t nsymbols;
} opdi_aoti_elf;

static int opdi_aoti_damaged(const opdi_aoti_elf *elf, const char *what) {
    char text[200];
    snprintf(text, sizeof text, "the library is damaged: %s", what);
    return opdi_aoti_bad(elf->model, text);
}
/* Finds `count` bytes that the library has at an address in its file; NULL: it has not. */
static void *opdi_aoti_at(const opdi_aoti_elf *elf, uint64_t address, uint64_t count) {
    for (int i = 0; i < elf->nsegments; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr && count <= segment->p_filesz &&
            address - segment->p_vaddr <= segment->p_filesz - count) {
            return elf->data + segment->p_offset + (address - segment->p_vaddr);
        }
    }
    return NULL;
}
/* Whether an address is in the library's memory, in a part with these rights. */
static bool opdi_aoti_is_mapped(const opdi_aoti_elf *elf, uint64_t address, uint64_t count, uint32_t rights) {
    for (int i = 0; i < elf->nsegments; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & rights) == rights && address >= segment->p_vaddr &&
            count <= segment->p_memsz &&
            address - segment->p_vaddr <= segment->p_memsz - count) {
            return true;
        }
    }
    return false;
}
static uint64_t opdi_aoti_entry(const opdi_aoti_elf *elf, int64_t tag) {
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag == tag) { return elf->dynamic[i].d_un.d_val; }
    }
    return 0;
}
static const char *opdi_aoti_machine(int machine) {
    return machine == EM_X86_64 ? "x86-64" : machine == EM_AARCH64 ? "aarch64" : machine == EM_386 ? "32-bit x86"
        : machine == EM_ARM ? "32-bit ARM" : machine == EM_PPC64 ? "PowerPC" : machine == EM_S390 ? "s390x"
        : machine == EM_RISCV ? "RISC-V" : "another machine";
}
static int opdi_aoti_elf_head(opdi_aoti_elf *elf) {
    Elf64_Ehdr head;
    uint64_t last = 0;           /* where the part before ends */
    char text[120];
    if (elf->size < sizeof head) { return opdi_aoti_bad(elf->model, "the library is cut off"); }
    memcpy(&head, elf->data, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
        const bool pe = elf->data[0] == 'M' && elf->data[1] == 'Z';
        return opdi_aoti_bad(elf->model, pe ? "the library is for Windows" : "this is no shared library (no ELF file)");
    }
    if (head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_machine != OPDI_AOTI_MACHINE) {
        const bool same = head.e_ident[EI_DATA] == ELFDATA2LSB;
        snprintf(text, sizeof text, "the library is for %s, this is %s",
                 same ? opdi_aoti_machine(head.e_machine) : "another machine", opdi_aoti_machine(OPDI_AOTI_MACHINE));
        return opdi_aoti_bad(elf->model, text);
    }
    if (head.e_type != ET_DYN) { return opdi_aoti_bad(elf->model, "this is no shared library, but another ELF file"); }
    if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum == 0 || head.e_phnum > 64) {
        return opdi_aoti_damaged(elf, "its list of segments");
    }
    if (head.e_phoff > elf->size || head.e_phnum * sizeof(Elf64_Phdr) > elf->size - head.e_phoff ||
        head.e_shoff > elf->size || (uint64_t)head.e_shnum * head.e_shentsize > elf->size - head.e_shoff) {
        return opdi_aoti_bad(elf->model, "the library is cut off");
    }
    elf->nsegments = head.e_phnum;
    memcpy(elf->segments, elf->data + head.e_phoff, head.e_phnum * sizeof(Elf64_Phdr));
    for (int i = 0; i < elf->nsegments; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        const bool load = segment->p_type == PT_LOAD;
        if (segment->p_offset > elf->size || segment->p_filesz > elf->size - segment->p_offset) {
            return opdi_aoti_bad(elf->model, "the library is cut off");
        }
        if (load && (segment->p_filesz > segment->p_memsz || segment->p_memsz > (uint64_t)1 << 40 ||
                     segment->p_vaddr > (uint64_t)1 << 40 || segment->p_align == 0 ||
                     (segment->p_align & (segment->p_align - 1)) || segment->p_align > 1u << 24 ||
                     (segment->p_vaddr - segment->p_offset) % segment->p_align ||
                     segment->p_vaddr < last)) {
            return opdi_aoti_damaged(elf, "its list of segments");
        }
        if (load && (!(segment->p_flags & PF_R) ||
                     (!(segment->p_flags & PF_W) && segment->p_filesz != segment->p_memsz))) {
            return opdi_aoti_damaged(elf, "its list of segments");
        }
        if (load) { last = segment->p_vaddr + segment->p_memsz; }
    }
    for (int i = 0; i < elf->nsegments; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type == PT_GNU_STACK && (segment->p_flags & PF_X)) {
            /* no model needs a stack that can be executed, but linkers think so of constants that assemblers made */
            const uint32_t flags = PF_R | PF_W;
            memcpy(elf->data + head.e_phoff + (size_t)i * sizeof *segment + offsetof(Elf64_Phdr, p_flags), &flags, 4);
        }
        const uint32_t rights = segment->p_type == PT_DYNAMIC || segment->p_type == PT_GNU_RELRO ? PF_R | PF_W : PF_R;
        if (segment->p_type != PT_GNU_STACK && segment->p_memsz &&
            !opdi_aoti_is_mapped(elf, segment->p_vaddr, segment->p_type == PT_TLS ? segment->p_filesz
                                 : segment->p_memsz,
                                 rights)) {
            return opdi_aoti_damaged(elf, "its list of segments");
        }
    }
    return 0;
}
/* How many symbols there are, as the newer kind of hash table tells; 0: it is damaged. */
static size_t opdi_aoti_gnu_count(const opdi_aoti_elf *elf, uint64_t address) {
    uint32_t head[4], most = 0, link;
    const unsigned char *at = (const unsigned char *)opdi_aoti_at(elf, address, sizeof head);
    if (!at) { return 0; }
    memcpy(head, at, sizeof head);
    if (head[2] == 0 || (head[2] & (head[2] - 1)) || !opdi_aoti_at(elf, address + 16, 8 * (uint64_t)head[2])) {
        return 0;                                 /* the loader relies on these */
    }
    const uint64_t buckets = address + 16 + 8 * (uint64_t)head[2], chains = buckets + 4 * (uint64_t)head[0];
    const unsigned char *all = (const unsigned char *)opdi_aoti_at(elf, buckets, 4 * (uint64_t)head[0]);
    if (!all) { return 0; }
    for (uint32_t i = 0; i < head[0]; i++) {
        memcpy(&link, all + 4 * (size_t)i, 4);
        most = link > most ? link : most;
    }
    if (most < head[1]) { return head[1]; }
    for (;; most++) {
        at = (const unsigned char *)opdi_aoti_at(elf, chains + 4 * (uint64_t)(most - head[1]), 4);
        if (!at) { return 0; }
        memcpy(&link, at, 4);
        if (link & 1) { return (size_t)most + 1; }
    }
}
/* How many symbols relocations name: the hash table does not tell of any where the library exports none. */
static size_t opdi_aoti_moved_count(const opdi_aoti_elf *elf) {
    static const int64_t tables[][2] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};
    size_t count = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t bytes = opdi_aoti_entry(elf, tables[i][1]);
        const unsigned char *table =
            (const unsigned char *)opdi_aoti_at(elf, opdi_aoti_entry(elf, tables[i][0]), bytes);
        for (uint64_t k = 0; table && k < bytes / sizeof(Elf64_Rela); k++) {
            Elf64_Rela move;
            memcpy(&move, table + k * sizeof move, sizeof move);
            if (ELF64_R_SYM(move.r_info) >= count) { count = ELF64_R_SYM(move.r_info) + 1; }
        }
    }
    return count;
}
static int opdi_aoti_elf_tables(opdi_aoti_elf *elf) {
    uint32_t head[2] = {0, 0};
    for (int i = 0; i < elf->nsegments; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type != PT_DYNAMIC) { continue; }
        elf->dynamic = (Elf64_Dyn *)opdi_aoti_at(elf, segment->p_vaddr, segment->p_filesz);
        elf->ndynamic = segment->p_filesz / sizeof(Elf64_Dyn);
        if (segment->p_offset % 8) { elf->dynamic = NULL; }
    }
    size_t end = 0;
    while (elf->dynamic && end < elf->ndynamic && elf->dynamic[end].d_tag != DT_NULL) { end++; }
    if (!elf->dynamic || end == elf->ndynamic) { return opdi_aoti_damaged(elf, "its dynamic section"); }
    elf->ndynamic = end;
    elf->names_size = opdi_aoti_entry(elf, DT_STRSZ);
    elf->names = (char *)opdi_aoti_at(elf, opdi_aoti_entry(elf, DT_STRTAB), elf->names_size);
    if (!elf->names || elf->names_size == 0 || elf->names[elf->names_size - 1] ||
        opdi_aoti_entry(elf, DT_SYMENT) != sizeof(Elf64_Sym)) {
        return opdi_aoti_damaged(elf, "its names");
    }
    const uint64_t hash = opdi_aoti_entry(elf, DT_HASH), gnu = opdi_aoti_entry(elf, DT_GNU_HASH);
    const void *at = hash ? opdi_aoti_at(elf, hash, sizeof head) : NULL;
    if (at) { memcpy(head, at, sizeof head); }
    elf->nsymbols = hash ? head[1] : gnu ? opdi_aoti_gnu_count(elf, gnu) : 0;
    if (hash && !opdi_aoti_at(elf, hash, 8 + 4 * ((uint64_t)head[0] + head[1]))) { elf->nsymbols = 0; }
    if (!hash && elf->nsymbols) {
        const size_t moved = opdi_aoti_moved_count(elf);
        if (moved > elf->nsymbols) { elf->nsymbols = moved; }
    }
    elf->symbols = (Elf64_Sym *)opdi_aoti_at(elf, opdi_aoti_entry(elf, DT_SYMTAB), elf->nsymbols * sizeof(Elf64_Sym));
    if (!elf->symbols || elf->nsymbols == 0 || (uintptr_t)elf->symbols % 8) {
        return opdi_aoti_damaged(elf, "its symbols");
    }
    if (opdi_aoti_entry(elf, DT_VERSYM)) {
        elf->versions = (uint16_t *)opdi_aoti_at(elf, opdi_aoti_entry(elf, DT_VERSYM), 2 * elf->nsymbols);
        if (!elf->versions || (uintptr_t)elf->versions % 2) { return opdi_aoti_damaged(elf, "its versions"); }
    }
    for (size_t i = 0; i < elf->nsymbols; i++) {
        const Elf64_Sym *const symbol = &elf->symbols[i];
        const bool function = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
        if (symbol->st_name >= elf->names_size ||
            (function && !opdi_aoti_is_mapped(elf, symbol->st_value, 1, PF_R | PF_X))) {
            return opdi_aoti_damaged(elf, "its symbols");
        }
    }
    return 0;
}
/* Whether an address is in a list of functions that are run when the library is loaded or goes. */
static bool opdi_aoti_runs_at_load(const opdi_aoti_elf *elf, uint64_t address) {
    static const int64_t arrays[][2] = {{DT_INIT_ARRAY, DT_INIT_ARRAYSZ}, {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}};
    for (int i = 0; i < 2; i++) {
        const uint64_t first = opdi_aoti_entry(elf, arrays[i][0]), bytes = opdi_aoti_entry(elf, arrays[i][1]);
        if (bytes && address >= first && address - first < bytes) { return true; }
    }
    return false;
}
/* Checks a table of relocations: each is of a symbol that there is, and within the library. */
static int opdi_aoti_elf_moves(const opdi_aoti_elf *elf, uint64_t address, uint64_t bytes) {
    const unsigned char *table = (const unsigned char *)opdi_aoti_at(elf, address, bytes);
    if (bytes == 0) { return 0; }
    if (!table || bytes % sizeof(Elf64_Rela)) { return opdi_aoti_damaged(elf, "its relocations"); }
    for (uint64_t i = 0; i < bytes / sizeof(Elf64_Rela); i++) {
        Elf64_Rela move;
        memcpy(&move, table + i * sizeof move, sizeof move);
        if (ELF64_R_SYM(move.r_info) >= elf->nsymbols || !opdi_aoti_is_mapped(elf, move.r_offset, 8, PF_R | PF_W)) {
            return opdi_aoti_damaged(elf, "its relocations");
        }
        if (opdi_aoti_runs_at_load(elf, move.r_offset) && ELF64_R_SYM(move.r_info) == 0 &&
            !opdi_aoti_is_mapped(elf, (uint64_t)move.r_addend, 1, PF_R | PF_X)) {
            return opdi_aoti_damaged(elf, "what it runs when it is loaded");
        }
    }
    return 0;
}
static int opdi_aoti_elf_check(const opdi_aoti_elf *elf) {
    static const int64_t arrays[][2] = {{DT_INIT_ARRAY, DT_INIT_ARRAYSZ}, {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}};
    if (opdi_aoti_elf_moves(elf, opdi_aoti_entry(elf, DT_RELA), opdi_aoti_entry(elf, DT_RELASZ)) ||
        opdi_aoti_elf_moves(elf, opdi_aoti_entry(elf, DT_JMPREL), opdi_aoti_entry(elf, DT_PLTRELSZ))) {
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        const uint64_t bytes = opdi_aoti_entry(elf, arrays[i][1]);
        const uint64_t single = opdi_aoti_entry(elf, i ? DT_FINI : DT_INIT);
        if (single && !opdi_aoti_is_mapped(elf, single, 1, PF_R | PF_X)) {
            return opdi_aoti_damaged(elf, "what it runs when it is loaded");
        }
        if (bytes && !opdi_aoti_at(elf, opdi_aoti_entry(elf, arrays[i][0]), bytes)) {
            return opdi_aoti_damaged(elf, "what it runs when it is loaded");
        }
    }
    /* the chain of the versions that are asked for */
    uint64_t at = opdi_aoti_entry(elf, DT_VERNEED);
    for (uint64_t left = at ? opdi_aoti_entry(elf, 0x6fffffff) : 0; left; left--) {
        Elf64_Verneed need;
        const void *here = opdi_aoti_at(elf, at, sizeof need);
        if (!here) { return opdi_aoti_damaged(elf, "its versions"); }
        memcpy(&need, here, sizeof need);
        uint64_t one = at + need.vn_aux;
        for (int i = 0; i < need.vn_cnt; i++) {
            Elf64_Vernaux aux;
            here = opdi_aoti_at(elf, one, sizeof aux);
            if (here) { memcpy(&aux, here, sizeof aux); }
            if (!here || aux.vna_name >= elf->names_size) { return opdi_aoti_damaged(elf, "its versions"); }
            one += aux.vna_next;
        }
        if (need.vn_file >= elf->names_size) { return opdi_aoti_damaged(elf, "its versions"); }
        at += need.vn_next;
    }
    return 0;
}

/* Libraries of PyTorch's, which ours stands for. */
static bool opdi_aoti_is_torch(const char *name) {
    return strncmp(name, "libtorch", 8) == 0 || strncmp(name, "libc10", 6) == 0 || strncmp(name, "libsleef", 8) == 0;
}
/* Lets dependencies on PyTorch's libraries name ours, in the place of the first one's name: both have 11 letters. */
static int opdi_aoti_elf_redirect(const opdi_aoti_elf *elf, const char *name) {
    uint64_t first = 0;
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED) { continue; }
        if (elf->dynamic[i].d_un.d_val >= elf->names_size) { return opdi_aoti_damaged(elf, "what it needs"); }
        const char *needed = elf->names + elf->dynamic[i].d_un.d_val;
        if (!opdi_aoti_is_torch(needed)) { continue; }
        if (!first && strlen(needed) >= strlen(name)) { first = elf->dynamic[i].d_un.d_val; }
    }
    if (!first) {
        return opdi_aoti_bad(elf->model, "the library was not compiled by AOTInductor (it does not need libtorch.so)");
    }
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag == DT_NEEDED && opdi_aoti_is_torch(elf->names + elf->dynamic[i].d_un.d_val)) {
            elf->dynamic[i].d_un.d_val = first;
        }
    }
    memcpy(elf->names + first, name, strlen(name) + 1);
    return 0;
}
/* Makes a stub for a name; 0 where there is no such function, 1 where there is, -1 with an error. */
static int opdi_aoti_stub(opd_aoti *model, opdi_aoti_library *library, const char *name, const char *as) {
    int count, element;
    for (size_t i = 0; i < sizeof opdi_aoti_symbols / sizeof *opdi_aoti_symbols; i++) {
        const opdi_aoti_symbol *symbol = &opdi_aoti_symbols[i];
        if (strcmp(name, symbol->name) != 0) { continue; }
        opdi_aoti_name(library, as);
        if (symbol->kind == OPDI_AOTI_CONSTANT) { opdi_aoti_code_constant(&library->code, symbol->number); }
        else {
            opdi_aoti_code_jump(&library->code, symbol->fn, symbol->kind == OPDI_AOTI_THIRD ? &symbol->number : NULL);
        }
        return 1;
    }
    const opdi_aoti_math *math = opdi_aoti_vector_of(name, &count, &element);
    const opdi_aoti_row *row = math ? NULL : opdi_aoti_row_of(model, name);
    if (row) {
        opdi_aoti_name(library, as);
        opdi_aoti_code_operator(&library->code, row);
    } else if (math) {
        static const int counts[5] = {2, 4, 8, 16, 0};
        static opdi_aoti_vector vectors[sizeof opdi_aoti_maths / sizeof *opdi_aoti_maths][2][5];
        int which = 0;
        while (counts[which] && counts[which] != count) { which++; }
        opdi_aoti_vector *vector = &vectors[math - opdi_aoti_maths][element == 8][which];
        vector->math = math;
        vector->count = count;
        vector->element = element;
        opdi_aoti_name(library, as);
        opdi_aoti_code_vector(&library->code, vector);
    }
    return !opd_ok() ? -1 : row || math ? 1 : 0;
}
/* A name of ours for a function that a model asks for: with another first letter, in the model's names, too. */
static void opdi_aoti_rename(const opdi_aoti_elf *elf, size_t at) {
    elf->names[elf->symbols[at].st_name] = '.';
    if (elf->versions) { elf->versions[at] = 1; }
}
/* Makes stubs for all that the library asks for and that is not told to be another library's. */
static int opdi_aoti_elf_bind(opdi_aoti_elf *elf, opdi_aoti_library *library, bool unchecked) {
    char missing[700] = "", as[300];
    int more = 0;
    for (size_t i = 1; i < elf->nsymbols && opd_ok(); i++) {
        const Elf64_Sym *symbol = &elf->symbols[i];
        const char *name = elf->names + symbol->st_name;
        const bool environment = !unchecked && strcmp(name, "getenv") == 0;
        if (symbol->st_shndx != SHN_UNDEF || !*name || strlen(name) >= sizeof as) { continue; }
        if (elf->versions && (elf->versions[i] & 0x7fff) > 1 && !environment) { continue; }
        snprintf(as, sizeof as, ".%s", name + 1);
        int there = 0;
        if (environment) {
            opdi_aoti_name(library, as);
            opdi_aoti_code_jump(&library->code, (opdi_aoti_fn)opdi_aoti_getenv, NULL);
            there = 1;
        } else { there = opdi_aoti_stub(elf->model, library, name, as); }
        if (there > 0) { opdi_aoti_rename(elf, i); }
        const bool torch = strncmp(name, "aoti_", 5) == 0 || strncmp(name, "torch_", 6) == 0 ||
            strncmp(name, "Sleef_", 6) == 0 || strstr(name, "3c10") || strstr(name, "2at");
        if (there == 0 && torch && ELF64_ST_BIND(symbol->st_info) != STB_WEAK) {
            if (strlen(missing) + strlen(name) + 3 < sizeof missing) {
                snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%s%s", *missing ? ", " : "",
                         name);
            } else { more++; }
        }
    }
    if (*missing && opd_ok()) {
        char text[900];
        snprintf(text, sizeof text, "the model asks for %s%s, which %s not here", missing, more ? " and others" : "",
                 strchr(missing, ',') ? "are" : "is");
        (void)opdi_aoti_bad(elf->model, text);
    }
    return opd_ok() ? 0 : -1;
}
/* Whether this processor has what vectors of 64 or 32 bytes need. */
static bool opdi_aoti_cpu_has(const char *isa) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
    __builtin_cpu_init();
    if (strcmp(isa, "AVX512") == 0) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    }
    if (strcmp(isa, "AVX512_VNNI") == 0) { return __builtin_cpu_supports("avx512vnni") != 0; }
    if (strcmp(isa, "AVX2") == 0) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
    return strncmp(isa, "NEON", 4) != 0 && strncmp(isa, "SVE", 3) != 0 && strcmp(isa, "ZVECTOR") != 0 &&
        strcmp(isa, "VSX") != 0;
#else
    const bool arm = strncmp(isa, "NEON", 4) == 0 || strncmp(isa, "SVE", 3) == 0, avx = strncmp(isa, "AVX", 3) == 0;
    return !(OPDI_AOTI_MACHINE == EM_X86_64 ? arm : avx) && strcmp(isa, "ZVECTOR") != 0 && strcmp(isa, "VSX") != 0;
#endif
}
static int opdi_aoti_check_isa(const opd_aoti *model, const char *isas) {
    char text[200], isa[40];
    while (isas && *isas) {
        const size_t length = strcspn(isas, " ");
        snprintf(isa, sizeof isa, "%.*s", (int)(length < 39 ? length : 39), isas);
        if (*isa && !opdi_aoti_cpu_has(isa)) {
            snprintf(text, sizeof text, "the model was compiled for %s, which this processor does not have", isa);
            return opdi_aoti_bad(model, text);
        }
        isas += length + (isas[length] == ' ');
    }
    return 0;
}
/* Loads a library from memory of its own, which it changes: checks it, makes the library of stubs, loads both. */
static int opdi_aoti_load_library(opd_aoti *model, unsigned char *data, size_t size) {
    static uint32_t libraries;
    opdi_aoti_elf elf;
    opdi_aoti_library library;
    opdi_aoti_bytes file;
    char name[16];
    int rc;
    memset(&elf, 0, sizeof elf);
    memset(&library, 0, sizeof library);
    memset(&file, 0, sizeof file);
    elf.model = model;
    elf.data = data;
    elf.size = size;
    if (opdi_aoti_elf_head(&elf) || opdi_aoti_elf_tables(&elf) || opdi_aoti_elf_check(&elf)) { return -1; }
    snprintf(name, sizeof name, "opd%05x.so", OPDI_AOTI_NEXT(libraries) & 0xfffff);
    opdi_aoti_name(&library, "");                             /* number 0 is no symbol */
    memset(library.symbols.data, 0, library.symbols.length);
    opdi_aoti_code_common(&library.code);
    rc = opdi_aoti_elf_bind(&elf, &library, model->unchecked) || opdi_aoti_elf_redirect(&elf, name) ? -1 : 0;
    for (size_t i = 1; i < elf.nsymbols && rc == 0; i++) {
        if (strstr(elf.names + elf.symbols[i].st_name, "leef_") && strstr(elf.names + elf.symbols[i].st_name, "f16")) {
            rc = opdi_aoti_check_isa(model, "AVX512");
        }
    }
    if (rc == 0) {
        opdi_aoti_link(&library, name, &file);
        rc = opd_ok() && opdi_aoti_image_load(model, &model->stubs, file.data, file.length) == 0 &&
            opdi_aoti_image_load(model, &model->image, data, size) == 0 ? 0 : -1;
    }
    free(library.code.data);
    free(library.names.data);
    free(library.symbols.data);
    free(file.data);
    return rc;
}

//== packages ==========================================================================================================

static char *opdi_aoti_copy_text(const char *text, size_t length) {
    char *copy = (char *)malloc(length + 1);
    if (!copy) {
        (void)opdi_aoti_no_memory();
        return NULL;
    }
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}
/* What an entry of a package is called below data/aotinductor/: "model/abc.wrapper.so"; NULL: it is elsewhere. */
static const char *opdi_aoti_below(const char *entry) {
    const char *at = entry ? strstr(entry, "data/aotinductor/") : NULL;
    return at && (at == entry || at[-1] == '/') ? at + 17 : NULL;
}
static bool opdi_aoti_ends(const char *text, const char *end) {
    const size_t length = strlen(text), ending = strlen(end);
    return length >= ending && strcmp(text + length - ending, end) == 0;
}
/* Notes the names of all models in a package, and chooses one. */
static int opdi_aoti_choose(opd_aoti *model, const opd_tensor_file *file, const char *wanted) {
    char text[600];
    size_t room = 2;
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) { room += strlen(opd_tensor_file_name(file, i)) + 1; }
    char *end = model->names = (char *)calloc(room, 1);
    if (!end) { return opdi_aoti_no_memory(); }
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        const char *below = opdi_aoti_below(opd_tensor_file_name(file, i));
        const char *slash = below ? strrchr(below, '/') : NULL;
        if (!slash || !opdi_aoti_ends(below, ".so")) { continue; }
        const size_t length = (size_t)(slash - below);
        const char *at = model->names;
        while (*at && !(strlen(at) == length && strncmp(at, below, length) == 0)) { at += strlen(at) + 1; }
        if (*at) { continue; }
        memcpy(end, below, length);
        end += length + 1;
    }
    const char *chosen = NULL;
    for (const char *at = model->names; *at; at += strlen(at) + 1) {
        if (wanted ? strcmp(at, wanted) == 0 : !chosen || strcmp(at, "model") == 0) { chosen = at; }
    }
    if (!*model->names) { return opdi_aoti_bad(model, "there is no compiled library in the package"); }
    if (!chosen) {
        snprintf(text, sizeof text, "the package has no model '%.200s', but '%.200s'", wanted, model->names);
        return opdi_aoti_bad(model, text);
    }
    model->name = opdi_aoti_copy_text(chosen, strlen(chosen));
    return model->name ? 0 : -1;
}
/* Finds an entry of the chosen model by how its name ends, and what it does not contain; -1: none. */
static int64_t opdi_aoti_find_entry(const opd_aoti *model, const opd_tensor_file *file, const char *end,
                                    const char *without) {
    const size_t length = strlen(model->name);
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        const char *below = opdi_aoti_below(opd_tensor_file_name(file, i));
        if (below && strncmp(below, model->name, length) == 0 && below[length] == '/' && opdi_aoti_ends(below, end) &&
            !strchr(below + length + 1, '/') && !(without && strstr(below, without))) {
            return i;
        }
    }
    return -1;
}
/* Reads an entry as JSON; NULL with an error. */
static opd_json *opdi_aoti_entry_json(const opd_tensor_file *file, int64_t entry) {
    opd_scope scope = opd_scope_open();
    const opd_tensor *bytes = opd_tensor_file_bytes(file, entry);
    opd_json *json = bytes ? opd_json_parse((const char *)opd_data(bytes), (size_t)opd_numel(bytes)) : NULL;
    opd_scope_close(&scope);
    return json;
}
/* Whether the package is for a machine like this, as its metadata says. */
static int opdi_aoti_check_metadata(const opd_aoti *model) {
    const char *const here = OPDI_AOTI_MACHINE == EM_X86_64 ? "x86_64" : "aarch64";
    char text[300];
    const char *device = opd_aoti_metadata(model, "AOTI_DEVICE_KEY"), *system = opd_aoti_metadata(model,
                                                                                                  "AOTI_PLATFORM");
    const char *machine = opd_aoti_metadata(model, "AOTI_MACHINE");
    if (device && strncmp(device, "cpu", 3) != 0) {
        snprintf(text, sizeof text, "the model was compiled for %.40s: only those for the CPU run here", device);
        return opdi_aoti_bad(model, text);
    }
    if (system && strcmp(system, "linux") != 0) {
        snprintf(text, sizeof text, "the model was compiled for %.40s, this is linux", system);
        return opdi_aoti_bad(model, text);
    }
    if (machine && *machine && strcmp(machine, here) != 0 && !(strcmp(machine, "AMD64") == 0 && here[0] == 'x') &&
        !(strcmp(machine, "arm64") == 0 && here[0] == 'a')) {
        snprintf(text, sizeof text, "the model was compiled for %.40s, this is %s", machine, here);
        return opdi_aoti_bad(model, text);
    }
    return opdi_aoti_check_isa(model, opd_aoti_metadata(model, "AOTI_CPU_ISA"));
}
/* The version of the format that the package's archive has. */
static int opdi_aoti_check_version(const opd_aoti *model, const opd_tensor_file *file) {
    char text[160];
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        const char *name = opd_tensor_file_name(file, i), *slash = strchr(name, '/');
        if (strcmp(slash ? slash + 1 : name, "archive_version") != 0) { continue; }
        const opd_tensor *bytes = opd_tensor_file_bytes(file, i);
        const char *data = bytes ? (const char *)opd_data(bytes) : "";
        if (bytes && (opd_numel(bytes) != 1 || *data != '0')) {
            snprintf(text, sizeof text, "the package has a newer format (%.*s) than is known here (0)",
                     (int)(opd_numel(bytes) < 20 ? opd_numel(bytes) : 20), data);
            return opdi_aoti_bad(model, text);
        }
    }
    return opd_ok() ? 0 : -1;
}
/* Lets go of the bytes that a file within the package was read from. */
static void opdi_aoti_close_bytes(void *data, void *user) { opdi_aoti_let_go(data, user); }
/* Reads one weight of the list: ["weight_0", [sizes], [strides], offset]; NULL with an error. */
static opd_tensor *opdi_aoti_read_weight(const opd_aoti *model, const opd_tensor_file *file, const opd_json *json,
                                         int64_t value) {
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS], entry = -1;
    char text[300];
    int ndim = 0, nstrides = 0;
    const int64_t first = opd_json_first(json, value), second = opd_json_next(json, first);
    const int64_t third = opd_json_next(json, second), fourth = opd_json_next(json, third);
    const char *name = opd_json_text(json, first, "");
    for (int64_t i = 0; i < opd_tensor_file_count(file) && *name; i++) {
        const char *at = strstr(opd_tensor_file_name(file, i), "data/weights/");
        if (at && strcmp(at + 13, name) == 0) { entry = i; }
    }
    for (int64_t e = opd_json_first(json, second); e >= 0 && ndim < OPD_MAX_DIMS; e = opd_json_next(json, e)) {
        sizes[ndim++] = opd_json_int(json, e, -1);
    }
    for (int64_t e = opd_json_first(json, third); e >= 0 && nstrides < OPD_MAX_DIMS; e = opd_json_next(json, e)) {
        strides[nstrides++] = opd_json_int(json, e, -1);
    }
    if (entry < 0 || ndim != nstrides) {
        snprintf(text, sizeof text, "the weight '%.100s' is not in the package", name);
        (void)opdi_aoti_bad(model, text);
        return NULL;
    }
    opd_tensor *bytes = opd_tensor_file_bytes(file, entry);
    opd_tensor_file *inner = !bytes ? NULL : opd_tensor_file_parse(opd_data(bytes), (size_t)opd_numel(bytes),
                                                                   opdi_aoti_close_bytes, opd_keep(bytes));
    opd_tensor *tensor = inner ? opd_tensor_file_at(inner, 0) : NULL;
    tensor = tensor ? opd_tensor_view(tensor, sizes, strides, ndim, opd_json_int(json, fourth, 0)) : NULL;
    opd_tensor_file_close(inner);
    return tensor;
}
/* Reads the weights that lie in the package each by itself, over the mapped file. */
static int opdi_aoti_read_weights(opd_aoti *model, const opd_tensor_file *file, int64_t list) {
    opd_json *json = opdi_aoti_entry_json(file, list);
    const int64_t count = json ? opd_json_count(json, 0) : 0;
    model->weights = (opd_tensor **)calloc((size_t)count + 1, sizeof *model->weights);
    model->weight_names = (char **)calloc((size_t)count + 1, sizeof *model->weight_names);
    if (!model->weights || !model->weight_names) { (void)opdi_aoti_no_memory(); }
    for (int64_t e = json ? opd_json_first(json, 0) : -1; e >= 0 && opd_ok(); e = opd_json_next(json, e)) {
        const char *name = opd_json_key(json, e);
        opd_tensor *tensor = name ? opdi_aoti_read_weight(model, file, json, e) : NULL;
        if (!tensor) { break; }
        model->weights[model->nweights] = opd_keep(tensor);
        model->weight_names[model->nweights++] = opdi_aoti_copy_text(name, strlen(name));
    }
    opd_json_free(json);
    return opd_ok() ? 0 : -1;
}
static int opdi_aoti_open_package(opd_aoti *model, const char *wanted) {
    opd_tensor_file *file = opd_tensor_file_open(model->path);
    opd_scope scope = opd_scope_open();
    int rc = -1;
    if (file && opdi_aoti_choose(model, file, wanted) == 0 && opdi_aoti_check_version(model, file) == 0) {
        const int64_t library = opdi_aoti_find_entry(model, file, ".so", NULL);
        const int64_t metadata = opdi_aoti_find_entry(model, file, "wrapper_metadata.json", NULL);
        const int64_t other = opdi_aoti_find_entry(model, file, "_metadata.json", NULL);
        const int64_t nodes = opdi_aoti_find_entry(model, file, "wrapper.json", NULL);
        const int64_t blob = opdi_aoti_find_entry(model, file, "_serialized_weights.bin", NULL);
        const int64_t bin = blob >= 0 ? blob : opdi_aoti_find_entry(model, file, ".blob", NULL);
        if (metadata >= 0 || other >= 0) {
            model->metadata = opdi_aoti_entry_json(file, metadata >= 0 ? metadata : other);
        }
        if (nodes >= 0 && opd_ok()) { model->nodes = opdi_aoti_entry_json(file, nodes); }
        const int64_t list = opdi_aoti_find_entry(model, file, "weights_config.json", NULL);
        if (list >= 0 && opd_ok()) { (void)opdi_aoti_read_weights(model, file, list); }
        if (bin >= 0 && opd_ok()) { model->blob = opd_keep(opd_tensor_file_bytes(file, bin)); }
        opd_tensor *bytes = opd_ok() && opdi_aoti_check_metadata(model) == 0 ? opd_tensor_file_bytes(file, library)
            : NULL;
        /* the mapped file is private: what is changed in it is changed for us; but its tables must be aligned */
        if (bytes && (uintptr_t)opd_data(bytes) % 16) { bytes = opd_clone(bytes); }
        if (bytes) {
            rc = opdi_aoti_load_library(model, (unsigned char *)opd_data(bytes), (size_t)opd_numel(bytes));
        }
    }
    opd_scope_close(&scope);
    opd_tensor_file_close(file);
    return rc;
}
static int opdi_aoti_open_file(opd_aoti *model) {
    struct stat about;
    int rc = -1;
    const int fd = open(model->path, O_RDONLY);
    if (fd < 0 || fstat(fd, &about)) {
        rc = opdi_aoti_bad(model, strerror(errno));
    } else if (!S_ISREG(about.st_mode) || about.st_size == 0) {
        rc = opdi_aoti_bad(model, "this is no file, or an empty one");
    } else {
        void *data = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) { rc = opdi_aoti_bad(model, strerror(errno)); }
        else {
            rc = opdi_aoti_load_library(model, (unsigned char *)data, (size_t)about.st_size);
            (void)munmap(data, (size_t)about.st_size);
        }
    }
    if (fd >= 0) { (void)close(fd); }
    return rc;
}

//== calls into models =================================================================================================

/* What the model says of its last failure. */
static const char *opdi_aoti_last_error(const opd_aoti *model) {
    const char *text = NULL;
    opdi_aoti_error_fn error = NULL;
    memcpy(&error, &model->functions[OPDI_AOTI_LAST_ERROR], sizeof error);
    if (error) { (void)error(&text); }
    return text && *text ? text : "the model failed and does not say why";
}
static int opdi_aoti_failed(const opd_aoti *model, const char *what) {
    if (!opd_ok()) { return -1; }
    const char *text = opdi_aoti_last_error(model);
    size_t length = strlen(text);
    while (length && (text[length - 1] == '\n' || text[length - 1] == ' ')) { length--; }
    return opd_fail(OPD_ERROR_KERNEL, "%s: %.300s: %.*s", what, model->path, (int)(length < 1000 ? length : 1000),
                    text);
}
static void opdi_aoti_enter(opdi_aoti_frame *frame, opd_aoti *model, bool loading, jmp_buf *out) {
    frame->model = model;
    frame->loading = loading;
    frame->out = out;
    frame->outer = opdi_aoti_current;
    opdi_aoti_current = frame;
}
static void opdi_aoti_leave(const opdi_aoti_frame *frame) { opdi_aoti_current = frame->outer; }

static int opdi_aoti_functions(opd_aoti *model) {
    char text[200];
    for (int i = 0; i < OPDI_AOTI_FUNCTIONS; i++) {
        opdi_aoti_find(model->image.handle, opdi_aoti_exports[i].name, &model->functions[i]);
        if (model->functions[i] || !opdi_aoti_exports[i].needed) { continue; }
        snprintf(text, sizeof text, "the library has no %s: it was not compiled by AOTInductor, or by another version",
                 opdi_aoti_exports[i].name);
        return opdi_aoti_bad(model, text);
    }
    model->exceptions = opdi_aoti_find_cxx(model->image.handle);
    return 0;
}
static int opdi_aoti_count(opd_aoti *model, int which, size_t *count) {
    opdi_aoti_count_fn fn;
    memcpy(&fn, &model->functions[which], sizeof fn);
    return fn(model->container, count) ? opdi_aoti_failed(model, "opd_aoti_load") : 0;
}
/* Makes the container, reads how many of what there are, and gives it the constants that lie in the package. */
static int opdi_aoti_start_container(opd_aoti *model, int copies) {
    opdi_aoti_create_fn create;
    opdi_aoti_blob_fn blob;
    opdi_aoti_blob_size_fn blob_size;
    uint64_t bytes = 0;
    memcpy(&create, &model->functions[OPDI_AOTI_CREATE], sizeof create);
    memcpy(&blob, &model->functions[OPDI_AOTI_BLOB], sizeof blob);
    memcpy(&blob_size, &model->functions[OPDI_AOTI_BLOB_SIZE], sizeof blob_size);
    if (create(&model->container, (size_t)(copies > 0 ? copies : 1), "cpu", NULL)) {
        return opdi_aoti_failed(model, "opd_aoti_load");
    }
    if (!model->blob || !blob) { return 0; }
    if (blob_size && (blob_size(model->container, &bytes) || bytes > (uint64_t)opd_numel(model->blob))) {
        return opdi_aoti_bad(model, "the weights in the package are cut off");
    }
    return blob(model->container, (const uint8_t *)opd_data(model->blob)) ? opdi_aoti_failed(model, "opd_aoti_load")
        : 0;
}
static int opdi_aoti_start(opd_aoti *model, int copies) {
    opdi_aoti_frame frame;
    jmp_buf out;
    opdi_aoti_enter(&frame, model, true, &out);
    if (setjmp(out) == 0) { (void)opdi_aoti_start_container(model, copies); }
    opdi_aoti_leave(&frame);
    return !opd_ok() || opdi_aoti_count(model, OPDI_AOTI_NINPUTS, &model->ninputs) ||
        opdi_aoti_count(model, OPDI_AOTI_NOUTPUTS, &model->noutputs) ||
        opdi_aoti_count(model, OPDI_AOTI_NCONSTANTS, &model->nconstants) ? -1 : 0;
}
static int opdi_aoti_give_constants(opd_aoti *model, const char *const *names, opd_tensors tensors, bool share,
                                    const char *who);
/* Gives the model the weights that lie in the package by themselves, and looks whether it has any now. */
static int opdi_aoti_fill(opd_aoti *model) {
    opdi_aoti_entries_fn entries;
    const opdi_aoti_pair *pairs = NULL;
    size_t count = 0;
    memcpy(&entries, &model->functions[OPDI_AOTI_ENTRIES], sizeof entries);
    if (entries && model->nconstants) {
        model->empty = entries(model->container, &pairs, &count, false) == 0 && count == 0;
    }
    if (model->nweights == 0) { return 0; }
    return opdi_aoti_give_constants(model, (const char *const *)(void *)model->weight_names,
                                    opd_tensors_of(model->weights, model->nweights),
                                    model->functions[OPDI_AOTI_SHARE] != NULL, "opd_aoti_load");
}
static bool opdi_aoti_is_package(const char *path) {
    char head[2] = "";
    FILE *file = fopen(path, "rb");
    const bool zip = file && fread(head, 1, 2, file) == 2 && head[0] == 'P' && head[1] == 'K';
    if (file) { (void)fclose(file); }
    return zip;
}
opd_aoti *opd_aoti_load(const char *path, const opd_aoti_options *options) {
    const char *name = options ? options->name : NULL;
    if (!opd_ok()) { return NULL; }
    if (!path) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_load: the path is NULL");
        return NULL;
    }
    if (options && (options->copies < 0 || options->copies > 1024)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_load: %d copies", options->copies);
        return NULL;
    }
    opd_aoti *model = (opd_aoti *)calloc(1, sizeof *model);
    if (!model || !(model->path = opdi_aoti_copy_text(path, strlen(path)))) {
        free(model);
        (void)opdi_aoti_no_memory();
        return NULL;
    }
    model->who = "opd_aoti_load";
    model->image.fd = model->stubs.fd = -1;
    model->unchecked = options && options->unchecked;
    const bool package = opdi_aoti_is_package(path);
    int rc = package ? opdi_aoti_open_package(model, name) : opdi_aoti_open_file(model);
    if (rc == 0 && !package) {
        const char *slash = strrchr(path, '/');
        model->name = opdi_aoti_copy_text(slash ? slash + 1 : path, strlen(slash ? slash + 1 : path));
        model->names = (char *)calloc(strlen(path) + 2, 1);
        if (model->names && model->name) { memcpy(model->names, model->name, strlen(model->name)); }
        rc = model->names && model->name ? 0 : opdi_aoti_no_memory();
    }
    if (rc == 0 && opdi_aoti_functions(model) == 0 && opdi_aoti_start(model, options ? options->copies : 1) == 0 &&
        opdi_aoti_fill(model) == 0) {
        return model;
    }
    opd_aoti_free(model);
    return NULL;
}
void opd_aoti_free(opd_aoti *model) {
    opdi_aoti_delete_fn del;
    if (!model) { return; }
    memcpy(&del, &model->functions[OPDI_AOTI_DELETE], sizeof del);
    if (model->container && del) { (void)del(model->container); }
    opdi_aoti_image_free(&model->image);
    opdi_aoti_image_free(&model->stubs);
    for (int64_t i = 0; i < model->nrows; i++) { free(model->rows[i]); }
    free(model->rows);
    free(model->ranges);
    for (int64_t i = 0; i < model->nweights; i++) {
        opd_release(model->weights[i]);
        free(model->weight_names[i]);
    }
    free(model->weights);
    free(model->weight_names);
    opd_json_free(model->metadata);
    opd_json_free(model->nodes);
    opd_release(model->blob);
    free(model->path);
    free(model->name);
    free(model->names);
    free(model);
}
const char *opd_aoti_name(const opd_aoti *model) { return model ? model->name : NULL; }
const char *opd_aoti_file_name(const opd_aoti *model, int i) {
    const char *at = model && i >= 0 ? model->names : "";
    for (; *at && i > 0; i--) { at += strlen(at) + 1; }
    return *at ? at : NULL;
}
const char *opd_aoti_metadata(const opd_aoti *model, const char *key) {
    const opd_json *json = model && key ? model->metadata : NULL;
    return json ? opd_json_text(json, opd_json_get(json, 0, key), NULL) : NULL;
}
int opd_aoti_ninputs(const opd_aoti *model) { return model ? (int)model->ninputs : 0; }
int opd_aoti_noutputs(const opd_aoti *model) { return model ? (int)model->noutputs : 0; }
static const char *opdi_aoti_named(const opd_aoti *model, int which, size_t count, int64_t i) {
    const char *name = NULL;
    opdi_aoti_name_fn fn = NULL;
    if (!model || i < 0 || (size_t)i >= count) { return NULL; }
    memcpy(&fn, &model->functions[which], sizeof fn);
    return fn && fn(model->container, (size_t)i, &name) == 0 ? name : NULL;
}
const char *opd_aoti_input_name(const opd_aoti *model, int i) {
    return opdi_aoti_named(model, OPDI_AOTI_INPUT, model ? model->ninputs : 0, i);
}
const char *opd_aoti_output_name(const opd_aoti *model, int i) {
    return opdi_aoti_named(model, OPDI_AOTI_OUTPUT, model ? model->noutputs : 0, i);
}

//== runs ==============================================================================================================

static int opdi_aoti_check_input(const opd_aoti *model, int i, opd_tensor *input) {
    const char *name = opd_aoti_input_name(model, i);
    if (!input) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: input %d ('%s') is NULL", i, name ? name : ""); }
    if (opd_tensor_device(input).type != OPD_CPU) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: input %d ('%s') is not on the CPU", i, name ? name : "");
    }
    if (opd_tensor_requires_grad(input) && opd_grad_mode_enabled()) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "opd_aoti_run: input %d ('%s') requires grad, and compiled models have no "
                        "derivatives (opd_detach, or OPD_NO_GRAD)", i, name ? name : "");
    }
    if (opd_is_conj(input) || opd_is_neg(input)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: input %d ('%s') is a conjugate or negative view: "
                        "opd_resolve_conj or opd_resolve_neg computes it", i, name ? name : "");
    }
    (void)opd_data(input);       /* says what is wrong with one that has no memory of its own */
    return opd_ok() ? 0 : -1;
}
static bool opdi_aoti_is_constant(const opd_aoti *model, const opd_tensor *tensor) {
    const char *data = opd_numel(tensor) ? (const char *)opd_data(tensor) : NULL;
    for (int64_t i = 0; data && i < model->nranges; i++) {
        if (data >= model->ranges[i].begin && data < model->ranges[i].end) { return true; }
    }
    return false;
}
/* Takes a result out of its box, into the innermost scope: memory of the model's is copied. */
static opd_tensor *opdi_aoti_unbox(const opd_aoti *model, void *box) {
    opd_tensor *tensor = opdi_aoti_tensor(box);
    if (!tensor) { return NULL; }
    return opdi_aoti_is_constant(model, tensor) ? opd_clone(tensor)
        : opd_tensor_view(tensor, opd_sizes(tensor), opd_strides(tensor), opd_ndim(tensor), opd_offset(tensor));
}
/* Frees the boxes that a run leaves, each once: a model may give one back in several places, as a result that it gives
   twice and an input that is a result are, and it frees inputs itself (gone[i]: it has freed input i). */
static void opdi_aoti_free_boxes(void **boxes, size_t count, const bool *gone, size_t ninputs) {
    for (size_t i = 0; i < count; i++) {
        if (i < ninputs && gone[i]) { boxes[i] = NULL; }
        for (size_t k = 0; k < i && boxes[i]; k++) {
            if (boxes[k] == boxes[i]) { boxes[i] = NULL; }
        }
    }
    for (size_t i = 0; i < count; i++) { (void)opdi_aoti_free_handle(boxes[i]); }
}
static void opdi_aoti_call(opd_aoti *model, void **inputs, void **outputs) {
    opdi_aoti_run_fn run;
    opdi_aoti_frame frame;
    jmp_buf out;
    const bool grad = opd_grad_mode_enabled();
    memcpy(&run, &model->functions[OPDI_AOTI_RUN], sizeof run);
    opdi_aoti_enter(&frame, model, false, &out);
    if (setjmp(out) == 0 && run(model->container, inputs, model->ninputs, outputs, model->noutputs, NULL, model)) {
        (void)opdi_aoti_failed(model, "opd_aoti_run");
    }
    opdi_aoti_leave(&frame);
    (void)opd_grad_mode_set(grad);
}
int opd_aoti_run(opd_aoti *model, opd_tensors inputs, opd_tensor **outputs, int cap) {
    int rc = 0;
    if (!opd_ok()) { return -1; }
    if (!model) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: the model is NULL"); }
    if (inputs.n != (int64_t)model->ninputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: %.300s takes %lld inputs, not %lld", model->path,
                        (long long)model->ninputs, (long long)inputs.n);
    }
    if (model->empty) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: %.300s was compiled without its weights: opd_aoti_update "
                        "gives "
                        "them", model->path);
    }
    if (cap < (int)model->noutputs || (!outputs && cap)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: %.300s has %lld outputs, and there is room for %d",
                        model->path,
                        (long long)model->noutputs, outputs ? cap : 0);
    }
    void **boxes = (void **)calloc(model->ninputs + model->noutputs + 1, sizeof *boxes);
    bool *gone = (bool *)calloc(model->ninputs + 1, sizeof *gone);
    if (!boxes || !gone) { rc = opdi_aoti_no_memory(); }
    void **results = boxes ? boxes + model->ninputs : NULL;
    for (size_t i = 0; i < model->ninputs && rc == 0; i++) {
        rc = opdi_aoti_check_input(model, (int)i, inputs.data[i]) || opdi_aoti_box(inputs.data[i], &boxes[i]) ? -1 : 0;
        if (rc == 0) { ((opdi_aoti_handle *)boxes[i])->gone = &gone[i]; }
    }
    if (rc == 0) {
        opdi_aoti_call(model, boxes, results);
        rc = opd_ok() ? 0 : -1;
    }
    for (size_t i = 0; i < model->noutputs && rc == 0; i++) {
        outputs[i] = results[i] ? opdi_aoti_unbox(model, results[i]) : NULL;
        rc = outputs[i] || !results[i] ? 0 : -1;
    }
    if (boxes && gone) { opdi_aoti_free_boxes(boxes, model->ninputs + model->noutputs, gone, model->ninputs); }
    for (size_t i = 0; rc && i < model->noutputs; i++) { outputs[i] = NULL; }
    free(boxes);
    free(gone);
    return rc ? -1 : (int)model->noutputs;
}
int opd_aoti_function(void *model, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opd_aoti *const self = (opd_aoti *)model;
    return opd_aoti_run(self, opd_tensors_of(inputs, ninputs), outputs, opd_aoti_noutputs(self));
}

//== constants =========================================================================================================

int64_t opd_aoti_constants(const opd_aoti *model) { return model ? (int64_t)model->nconstants : 0; }
int opd_aoti_constant_at(const opd_aoti *model, int64_t i, opd_aoti_constant *constant) {
    opdi_aoti_dtype_fn dtype_of;
    opdi_aoti_bytes_fn bytes_of;
    opdi_aoti_flag_fn folded_of;
    opdi_aoti_dtype_fn type_of;
    int32_t dtype = OPD_DTYPE_NONE, type = 0;
    size_t bytes = 0;
    bool folded = false;
    if (!model || i < 0 || i >= (int64_t)model->nconstants) {
        return opd_fail(OPD_ERROR_INDEX, "opd_aoti_constant_at: there is no constant %lld", (long long)i);
    }
    memcpy(&dtype_of, &model->functions[OPDI_AOTI_DTYPE], sizeof dtype_of);
    memcpy(&bytes_of, &model->functions[OPDI_AOTI_BYTES], sizeof bytes_of);
    memcpy(&folded_of, &model->functions[OPDI_AOTI_FOLDED], sizeof folded_of);
    memcpy(&type_of, &model->functions[OPDI_AOTI_TYPE], sizeof type_of);
    if (type_of) { (void)type_of(model->container, (size_t)i, &type); }
    if (dtype_of) { (void)dtype_of(model->container, (size_t)i, &dtype); }
    if (bytes_of) { (void)bytes_of(model->container, (size_t)i, &bytes); }
    if (folded_of) { (void)folded_of(model->container, (size_t)i, &folded); }
    constant->symbol = opdi_aoti_named(model, OPDI_AOTI_SYMBOL, model->nconstants, i);
    constant->name = opdi_aoti_named(model, OPDI_AOTI_FQN, model->nconstants, i);
    if (!constant->name || !*constant->name) { constant->name = constant->symbol; }
    constant->dtype = (opd_scalar_type)dtype;
    constant->bytes = (int64_t)bytes;
    constant->folded = folded;
    constant->buffer = type == 2;
    return 0;
}
/* Finds a constant by either name; -1 with an error. */
static int64_t opdi_aoti_find_constant(const opd_aoti *model, const char *name, opd_aoti_constant *constant,
                                       const char *who) {
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; name && i < opd_aoti_constants(model); i++) {
            if (opd_aoti_constant_at(model, i, constant)) { return -1; }
            const char *text = pass == 0 ? constant->name : constant->symbol;
            if (text && strcmp(text, name) == 0) { return i; }
        }
    }
    return opd_fail(OPD_ERROR_NOT_FOUND, "%s: %.300s has no constant '%.200s'", who, model ? model->path : "NULL",
                    name ? name : "NULL");
}
opd_tensor *opd_aoti_constant_get(opd_aoti *model, const char *name) {
    opdi_aoti_entries_fn entries;
    opd_aoti_constant constant;
    const opdi_aoti_pair *pairs = NULL;
    size_t count = 0;
    if (!opd_ok() || opdi_aoti_find_constant(model, name, &constant, "opd_aoti_constant_get") < 0) { return NULL; }
    memcpy(&entries, &model->functions[OPDI_AOTI_ENTRIES], sizeof entries);
    if (!entries) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_aoti_constant_get: %.300s was compiled by a PyTorch that could not "
                       "yet "
                       "tell its constants", model->path);
        return NULL;
    }
    if (entries(model->container, &pairs, &count, false)) {
        (void)opdi_aoti_failed(model, "opd_aoti_constant_get");
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(pairs[i].name, constant.name) != 0 && strcmp(pairs[i].name, constant.symbol) != 0) { continue; }
        opd_tensor *tensor = opdi_aoti_tensor(pairs[i].handle);
        return tensor ? opd_clone(tensor) : NULL;
    }
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_aoti_constant_get: %.300s has no value of '%.200s' yet", model->path,
                   name);
    return NULL;
}
/* The tensor over memory of so many bytes, all of which models copy. */
static opd_tensor *opdi_aoti_padded(opd_tensor *tensor, int64_t bytes) {
    opd_tensor *memory = opd_zeros(opd_ints_of(&bytes, 1), OPD_UINT8);
    opd_tensor *flat = memory && opd_ok() ? opd_view_dtype(memory, opd_dtype(tensor)) : NULL;
    opd_tensor *padded = flat ? opd_tensor_view(flat, opd_sizes(tensor), opd_strides(tensor), opd_ndim(tensor), 0)
        : NULL;
    return padded ? opd_copy_(padded, tensor) : NULL;
}
/* Whether a tensor can be a constant's value: its box is made, or an error. */
static int opdi_aoti_value_box(opd_aoti *model, const char *name, opd_tensor *tensor, opdi_aoti_pair *pair,
                               const char *who) {
    opd_aoti_constant constant;
    if (opdi_aoti_find_constant(model, name, &constant, who) < 0) { return -1; }
    if (!tensor) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: '%.200s' is NULL", who, name); }
    const int64_t bytes = opd_numel(tensor) * (int64_t)opd_dtype_size(opd_dtype(tensor));
    if (opd_dtype(tensor) != constant.dtype || bytes > constant.bytes || constant.bytes - bytes >= 64) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: '%.200s' has %lld bytes of %s, the tensor %lld of %s", who, name,
                        (long long)constant.bytes, opd_dtype_name(constant.dtype), (long long)bytes,
                        opd_dtype_name(opd_dtype(tensor)));
    }
    tensor = opd_contiguous(opd_detach(tensor));
    if (bytes < constant.bytes) { tensor = opdi_aoti_padded(tensor, constant.bytes); }
    pair->name = constant.symbol;
    return opdi_aoti_box(tensor, &pair->handle) ? -1 : 0;
}
/* A model without weights needs all of them at once. */
static int opdi_aoti_check_all(const opd_aoti *model, const opdi_aoti_pair *pairs, int64_t count, const char *who) {
    opd_aoti_constant constant;
    for (int64_t i = 0; i < opd_aoti_constants(model); i++) {
        bool given = opd_aoti_constant_at(model, i, &constant) != 0 || constant.folded || constant.bytes == 0;
        for (int64_t k = 0; k < count && !given; k++) { given = strcmp(pairs[k].name, constant.symbol) == 0; }
        if (!given) {
            return opd_fail(OPD_ERROR_NOT_FOUND, "%s: %.300s was compiled without its weights, and '%.200s' is not "
                            "among "
                            "those given", who, model->path, constant.name);
        }
    }
    return opd_ok() ? 0 : -1;
}
/* share: the model looks at the tensors' memory, and holds them; else it copies. */
static int opdi_aoti_give_constants(opd_aoti *model, const char *const *names, opd_tensors tensors, bool share,
                                    const char *who) {
    opdi_aoti_pairs_fn update;
    opdi_aoti_frame frame;
    jmp_buf out;
    memcpy(&update, &model->functions[share ? OPDI_AOTI_SHARE : OPDI_AOTI_UPDATE], sizeof update);
    opdi_aoti_pair *const pairs = (opdi_aoti_pair *)calloc((size_t)tensors.n + 1, sizeof *pairs);
    if (!pairs) { return opdi_aoti_no_memory(); }
    opd_scope scope = opd_scope_open();
    for (int64_t i = 0; i < tensors.n && opd_ok(); i++) {
        (void)opdi_aoti_value_box(model, names[i], tensors.data[i], &pairs[i], who);
    }
    if (opd_ok() && model->empty) { (void)opdi_aoti_check_all(model, pairs, tensors.n, who); }
    if (opd_ok()) {
        opdi_aoti_enter(&frame, model, true, &out);
        if (setjmp(out) || update(model->container, pairs, (size_t)tensors.n, false, false)) {
            (void)opdi_aoti_failed(model, who);
        }
        opdi_aoti_leave(&frame);
        if (opd_ok()) { model->empty = false; }
    }
    for (int64_t i = 0; i < tensors.n; i++) { (void)opdi_aoti_free_handle(pairs[i].handle); }
    free(pairs);
    opd_scope_close(&scope);
    return opd_ok() ? 0 : -1;
}
int opd_aoti_update(opd_aoti *model, const char *const *names, opd_tensors tensors) {
    if (!opd_ok()) { return -1; }
    if (!model || (tensors.n && !names)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_update: the model or the names are NULL");
    }
    if (!model->functions[OPDI_AOTI_UPDATE]) {
        return opd_fail(OPD_ERROR_NOT_FOUND, "opd_aoti_update: %.300s was compiled by a PyTorch whose models take "
                        "constants from C++ alone", model->path);
    }
    return opdi_aoti_give_constants(model, names, tensors, false, "opd_aoti_update");
}

//== operators that models name ========================================================================================
//
// An operator that the table of functions lacks is called by its number in a list that the package has, as
// torch.export writes nodes: what is fixed stands there, tensors and integers come with the call.

typedef struct opdi_aoti_flat {
    opd_aoti *model;
    const int64_t *ints;
    void *const *tensors;
    int nints, ntensors, at_int, at_tensor;
    void *memory[4 * OPDI_AOTI_ARGS];
    int nmemory;
} opdi_aoti_flat;

static void *opdi_aoti_flat_memory(opdi_aoti_flat *flat, int64_t count, size_t element) {
    void *memory = flat->nmemory < 4 * OPDI_AOTI_ARGS ? calloc((size_t)count + 1, element) : NULL;
    if (memory) { flat->memory[flat->nmemory++] = memory; }
    else { (void)opdi_aoti_no_memory(); }
    return memory;
}
static opd_tensor *opdi_aoti_flat_tensor(opdi_aoti_flat *flat) {
    if (flat->at_tensor >= flat->ntensors) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a compiled model calls an operator with too few tensors");
        return NULL;
    }
    return opdi_aoti_tensor(flat->tensors[flat->at_tensor++]);
}
static int64_t opdi_aoti_flat_int(opdi_aoti_flat *flat) {
    if (flat->at_int >= flat->nints) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a compiled model calls an operator with too few integers");
        return 0;
    }
    return flat->ints[flat->at_int++];
}
/* torch.export's numbers of dtypes and layouts. */
static opd_value opdi_aoti_export_dtype(int64_t number) {
    static const int dtypes[] = {-1, OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT16, OPD_FLOAT32,
                                 OPD_FLOAT64, OPD_COMPLEX32, OPD_COMPLEX64, OPD_COMPLEX128, OPD_BOOL, OPD_BFLOAT16};
    return opd_value_int(number > 0 && number < 14 ? dtypes[number] : number);
}
static opd_value opdi_aoti_flat_list(opdi_aoti_flat *flat, const char *kind, int64_t list) {
    const opd_json *json = flat->model->nodes;
    const int64_t count = opd_json_count(json, list);
    int64_t n = 0;
    if (strcmp(kind, "as_tensors") == 0 || strcmp(kind, "as_optional_tensors") == 0) {
        opd_tensor **tensors = (opd_tensor **)opdi_aoti_flat_memory(flat, count, sizeof *tensors);
        for (int64_t e = opd_json_first(json, list); e >= 0 && tensors; e = opd_json_next(json, e)) {
            const bool none = strcmp(kind, "as_optional_tensors") == 0 && opd_json_get(json, e, "as_none") >= 0;
            tensors[n++] = none ? NULL : opdi_aoti_flat_tensor(flat);
        }
        return opd_value_tensors(tensors, n);
    }
    if (strcmp(kind, "as_floats") == 0) {
        double *numbers = (double *)opdi_aoti_flat_memory(flat, count, sizeof *numbers);
        for (int64_t e = opd_json_first(json, list); e >= 0 && numbers; e = opd_json_next(json, e)) {
            numbers[n++] = opd_json_float(json, e, 0);
        }
        return opd_value_floats(numbers, n);
    }
    if (strcmp(kind, "as_bools") == 0) {
        bool *bools = (bool *)opdi_aoti_flat_memory(flat, count, sizeof *bools);
        for (int64_t e = opd_json_first(json, list); e >= 0 && bools; e = opd_json_next(json, e)) {
            bools[n++] = opd_json_bool(json, e, false);
        }
        return opd_value_bools(bools, n);
    }
    int64_t *ints = (int64_t *)opdi_aoti_flat_memory(flat, count, sizeof *ints);
    while (ints && n < count) { ints[n++] = opdi_aoti_flat_int(flat); }
    return opd_value_ints(ints, n);
}
/* The value of an argument, {"as_int": 3}. */
static opd_value opdi_aoti_flat_value(opdi_aoti_flat *flat, int64_t arg) {
    const opd_json *json = flat->model->nodes;
    const int64_t value = opd_json_first(json, arg);
    const char *kind = opd_json_key(json, value);
    if (!kind || strcmp(kind, "as_none") == 0) { return opd_value_none(); }
    if (strcmp(kind, "as_tensor") == 0) { return opd_value_tensor(opdi_aoti_flat_tensor(flat)); }
    if (strcmp(kind, "as_optional_tensor") == 0) {
        return opd_json_get(json, value, "as_none") >= 0 ? opd_value_none()
            : opd_value_tensor(opdi_aoti_flat_tensor(flat));
    }
    if (strcmp(kind, "as_int") == 0 || strcmp(kind, "as_sym_int") == 0) {
        return opd_value_int(opdi_aoti_flat_int(flat));
    }
    if (strcmp(kind, "as_float") == 0) { return opd_value_float(opd_json_float(json, value, NAN)); }
    if (strcmp(kind, "as_bool") == 0) { return opd_value_bool(opd_json_bool(json, value, false)); }
    if (strcmp(kind, "as_string") == 0) { return opd_value_str(opd_json_text(json, value, "")); }
    if (strcmp(kind, "as_scalar_type") == 0) { return opdi_aoti_export_dtype(opd_json_int(json, value, 0)); }
    if (strcmp(kind, "as_layout") == 0) { return opd_value_int(0); }
    if (strcmp(kind, "as_memory_format") == 0) {
        static const int formats[] = {0, 0, 2, 3, 1};         /* unknown, contiguous, channels last, 3d, preserve */
        const int64_t number = opd_json_int(json, value, 0);
        return opd_value_int(number >= 0 && number < 5 ? formats[number] : 0);
    }
    if (strcmp(kind, "as_device") == 0) { return opd_value_device(opdi_aoti_device(0, -1)); }
    if (opd_json_kind_of(json, value) == OPD_JSON_LIST) { return opdi_aoti_flat_list(flat, kind, value); }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "a compiled model calls an operator with an argument %.60s, which is not "
                   "known here",
                   kind);
    return opd_value_none();
}
/* Puts a result into the box that the model has made for it. */
static int opdi_aoti_flat_give(opdi_aoti_flat *flat, const opd_value *value) {
    if (value->tag == OPD_TAG_TENSORS) {
        for (int i = 0; i < value->n; i++) {
            const opd_value one = opd_value_tensor(value->u.tensors[i]);
            if (opdi_aoti_flat_give(flat, &one)) { return -1; }
        }
        return 0;
    }
    if (value->tag != OPD_TAG_TENSOR) { return 0; }
    if (flat->at_tensor >= flat->ntensors) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a compiled model calls an operator with too few places for its results");
    }
    opdi_aoti_handle *handle = (opdi_aoti_handle *)flat->tensors[flat->at_tensor++];
    if (handle) { (void)opd_assign(&handle->tensor, value->u.t); }
    return opd_ok() ? 0 : -1;
}
static int opdi_aoti_flat_call(opdi_aoti_flat *flat, int64_t node) {
    const opd_json *json = flat->model->nodes;
    opd_keyword keywords[OPDI_AOTI_ARGS];
    opd_value rets[16];
    char name[300];
    const char *target = opd_json_text(json, opd_json_get(json, node, "target"), "");
    int n = 0;
    snprintf(name, sizeof name, "%.250s", opdi_aoti_ends(target, ".default") ? "" : target);
    if (!*name) { snprintf(name, sizeof name, "%.*s", (int)(strlen(target) < 258 ? strlen(target) - 8 : 250), target); }
    if (strncmp(name, "torch.ops.", 10) == 0) { memmove(name, name + 10, strlen(name + 10) + 1); }
    opd_op *op = opd_find(name);
    if (!op) { return -1; }
    const int64_t inputs = opd_json_get(json, node, "inputs");
    for (int64_t e = opd_json_first(json, inputs); e >= 0 && n < OPDI_AOTI_ARGS; e = opd_json_next(json, e)) {
        keywords[n].name = opd_json_text(json, opd_json_get(json, e, "name"), "");
        keywords[n++].value = opdi_aoti_flat_value(flat, opd_json_get(json, e, "arg"));
    }
    for (int i = 0; i < 16; i++) { rets[i] = opd_value_none(); }
    if (!opd_ok() || opd_call_keywords(op, rets, NULL, 0, keywords, n)) { return -1; }
    const int64_t outputs = opd_json_get(json, node, "outputs");
    n = 0;
    for (int64_t e = opd_json_first(json, outputs); e >= 0 && n < 16; e = opd_json_next(json, e)) {
        if (opdi_aoti_flat_give(flat, &rets[n++])) { return -1; }
    }
    return 0;
}
static int32_t opdi_aoti_proxy(void *executor, int node, int nints, int64_t *ints, int ntensors, void **tensors) {
    opdi_aoti_flat flat;
    int rc = -1;
    memset(&flat, 0, sizeof flat);
    flat.model = (opd_aoti *)executor;
    flat.ints = ints;
    flat.nints = nints;
    flat.tensors = tensors;
    flat.ntensors = ntensors;
    if (!opd_ok()) { return 1; }
    const opd_json *json = flat.model ? flat.model->nodes : NULL;
    int64_t e = json ? opd_json_first(json, opd_json_get(json, 0, "nodes")) : -1;
    for (int i = 0; i < node && e >= 0; i++) { e = opd_json_next(json, e); }
    opd_scope scope = opd_scope_open();
    if (e < 0) {
        (void)opd_fail(OPD_ERROR_FILE, "a compiled model calls operator %d of a list that was in its package (load "
                       "the .pt2, "
                       "not the .so)", node);
    } else { rc = opdi_aoti_flat_call(&flat, opd_json_get(json, e, "node")); }
    opd_scope_close(&scope);
    for (int i = 0; i < flat.nmemory; i++) { free(flat.memory[i]); }
    return rc ? 1 : opdi_aoti_status();
}

//== extensions: torchvision ===========================================================================================
//
// Of torchvision's operators the binary has the kernels, also those of derivatives; that they belong together, what
// results look like and what autocast does, its part in Python says.  Here it is said for the operators of these
// schemas, and no others.

/* Calls the operator for the gradient of the first argument: with the saved tensors, `before` numbers, the sizes of
   that argument, and `after` numbers. */
static int opdi_ext_roi_backward(opd_backward_call *bw, const char *name, int before, int after) {
    opd_context *ctx = opd_bw_context(bw);
    opd_value args[16];
    opd_tensor *grad = opd_bw_grad(bw, 0);
    int count = 0;
    if (!opd_bw_needs(bw, 0) || !grad) { return 0; }
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    args[count++] = opd_value_tensor(opd_contiguous(grad));
    for (int i = 0; i < opd_context_nsaved(ctx); i++) { args[count++] = opd_value_tensor(opd_context_saved(ctx, i)); }
    for (int i = 0; i < before; i++) { args[count++] = opd_bw_value(bw, 2 + i); }
    for (int i = 0; i < 4; i++) { args[count++] = opd_value_int(i < sizes.n ? sizes.data[i] : 0); }
    for (int i = 0; i < after; i++) { args[count++] = opd_bw_value(bw, 2 + before + i); }
    opd_op *op = opd_ok() ? opd_find(name) : NULL;
    return op ? opd_bw_return(bw, 0, opd_call_op(op, args, count)) : -1;
}
static int opdi_ext_roi_align_backward(opd_backward_call *bw) {
    return opdi_ext_roi_backward(bw, "torchvision::_roi_align_backward", 3, 2);
}
static int opdi_ext_roi_pool_backward(opd_backward_call *bw) {
    return opdi_ext_roi_backward(bw, "torchvision::_roi_pool_backward", 3, 0);
}
static int opdi_ext_ps_roi_align_backward(opd_backward_call *bw) {
    return opdi_ext_roi_backward(bw, "torchvision::_ps_roi_align_backward", 4, 0);
}
static int opdi_ext_ps_roi_pool_backward(opd_backward_call *bw) {
    return opdi_ext_roi_backward(bw, "torchvision::_ps_roi_pool_backward", 3, 0);
}
/* Keeps the regions, and which elements the second result names. */
static int opdi_ext_roi_setup(opd_context *ctx) {
    opd_tensor *saved[2];
    const opd_value second = opd_context_output(ctx, 1);
    int count = 0;
    saved[count++] = opd_context_tensor(ctx, 1);
    if (second.tag == OPD_TAG_TENSOR) {
        saved[count++] = second.u.t;
        (void)opd_context_mark_non_differentiable(ctx, second.u.t);
    }
    return opd_context_save_for_backward(ctx, saved, count);
}
static int opdi_ext_deform_setup(opd_context *ctx) {
    opd_tensor *saved[5];
    for (int i = 0; i < 5; i++) { saved[i] = opd_context_tensor(ctx, i); }
    return opd_context_save_for_backward(ctx, saved, 5);
}
static int opdi_ext_deform_backward(opd_backward_call *bw) {
    static opd_op *backward;
    opd_context *ctx = opd_bw_context(bw);
    opd_tensor *grads[5], *grad = opd_bw_grad(bw, 0);
    opd_value args[15];
    if (!grad) { return 0; }
    args[0] = opd_value_tensor(opd_contiguous(grad));
    for (int i = 0; i < 5; i++) { args[1 + i] = opd_value_tensor(opd_context_saved(ctx, i)); }
    for (int i = 5; i < 14; i++) { args[1 + i] = opd_bw_value(bw, i); }
    if (!opd_ok() || opd_call_tensors(OPD_OP(&backward, "torchvision::_deform_conv2d_backward"), grads, args, 15)) {
        return -1;
    }
    for (int i = 0; i < 5; i++) {
        if (opd_bw_needs(bw, i)) { (void)opd_bw_return(bw, i, grads[i]); }
    }
    return opd_ok() ? 0 : -1;
}

static int opdi_ext_roi_check(opd_call *call) {
    const opd_tensor *input = opd_arg_tensor(call, 0), *rois = opd_arg_tensor(call, 1);
    OPD_CHECK(opd_ndim(input) == 4, "input must have 4 dims, not %d", opd_ndim(input));
    OPD_CHECK(opd_ndim(rois) == 2 && opd_size(rois, 1) == 5, "rois must have shape as Tensor[K, 5]");
    OPD_CHECK(opd_dtype(input) == opd_dtype(rois), "Expected tensor for input to have the same type as tensor for "
              "rois; but type %s does not equal %s", opd_dtype_name(opd_dtype(input)),
              opd_dtype_name(opd_dtype(rois)));
    return opd_ok() ? 0 : -1;
}
/* What results look like: a row for each region, its channels divided where each cell has some of its own. */
static int opdi_ext_roi_shape(opd_call *call, bool second, bool divided) {
    int64_t sizes[4];
    if (opdi_ext_roi_check(call)) { return -1; }
    sizes[0] = opd_size(opd_arg_tensor(call, 1), 0);
    sizes[1] = opd_size(opd_arg_tensor(call, 0), 1);
    sizes[2] = opd_arg_int(call, 3);
    sizes[3] = opd_arg_int(call, 4);
    OPD_CHECK(sizes[2] > 0 && sizes[3] > 0, "the size of the result must be positive");
    if (divided) {
        OPD_CHECK(sizes[1] % (sizes[2] * sizes[3]) == 0,
                  "input channels must be a multiple of pooling height * pooling width");
        sizes[1] /= sizes[2] * sizes[3];
    }
    (void)opd_result(call, 0, sizes, 4, opd_dtype(opd_arg_tensor(call, 0)));
    if (second) { (void)opd_result(call, 1, sizes, 4, OPD_INT32); }
    return opd_ok() ? 0 : -1;
}
static int opdi_ext_roi_align_fake(opd_call *call) { return opdi_ext_roi_shape(call, false, false); }
static int opdi_ext_roi_pool_fake(opd_call *call) { return opdi_ext_roi_shape(call, true, false); }
static int opdi_ext_ps_roi_fake(opd_call *call) { return opdi_ext_roi_shape(call, true, true); }
static int opdi_ext_roi_grad_shape(opd_call *call, int first) {
    int64_t sizes[4];
    for (int i = 0; i < 4; i++) { sizes[i] = opd_arg_int(call, first + i); }
    (void)opd_result(call, 0, sizes, 4, opd_dtype(opd_arg_tensor(call, 0)));
    return opd_ok() ? 0 : -1;
}
static int opdi_ext_roi_align_grad_fake(opd_call *call) { return opdi_ext_roi_grad_shape(call, 5); }
static int opdi_ext_roi_pool_grad_fake(opd_call *call) { return opdi_ext_roi_grad_shape(call, 6); }
static int opdi_ext_ps_align_grad_fake(opd_call *call) { return opdi_ext_roi_grad_shape(call, 7); }
static int opdi_ext_deform_fake(opd_call *call) {
    const opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1);
    int64_t sizes[4];
    OPD_CHECK(opd_ndim(input) == 4 && opd_ndim(weight) == 4, "input and weight must have 4 dims");
    sizes[0] = opd_size(input, 0);
    sizes[1] = opd_size(weight, 0);
    for (int i = 0; i < 2; i++) {
        const int64_t stride = opd_arg_int(call, 5 + i);
        const int64_t reach = opd_arg_int(call, 9 + i) * (opd_size(weight, 2 + i) - 1);
        OPD_CHECK(stride > 0, "the stride must be positive");
        sizes[2 + i] = (opd_size(input, 2 + i) + 2 * opd_arg_int(call, 7 + i) - reach - 1) / stride + 1;
    }
    (void)opd_result(call, 0, sizes, 4, opd_dtype(input));
    return opd_ok() ? 0 : -1;
}
static int opdi_ext_deform_grad_fake(opd_call *call) {
    for (int i = 0; i < 5; i++) {
        const opd_tensor *like = opd_arg_tensor(call, 1 + i);
        (void)opd_result(call, i, opd_sizes(like), opd_ndim(like), opd_dtype(like));
    }
    return opd_ok() ? 0 : -1;
}
/* At AutocastCPU: computed in float32, and returned as the input is. */
static int opdi_ext_roi_align_autocast(opd_call *call) {
    static opd_op *roi_align;
    opd_value args[7];
    const opd_key_guard guard = opd_keys_exclude(opd_keyset_add(opd_keyset_make(0, 0), OPD_KEY_AUTOCAST_CPU));
    memcpy(args, opd_call_args(call), sizeof args);
    for (int i = 0; i < 2; i++) {
        args[i] = opd_value_tensor(opd_autocast_cast(OPD_FLOAT32, opd_arg_tensor(call, i)));
    }
    opd_tensor *out = opd_ok() ? opd_call_op(OPD_OP(&roi_align, "torchvision::roi_align"), args, 7) : NULL;
    if (out) { out = opd_to_dtype(out, opd_dtype(opd_arg_tensor(call, 0))); }
    opd_keys_restore(guard);
    return opd_return_tensor(call, out);
}

typedef struct opdi_ext_vision_op {
    const char *schema;          /* as the library defines it */
    opd_kernel fake;
    opd_backward_fn backward;
    opd_setup_fn setup;
} opdi_ext_vision_op;
static const opdi_ext_vision_op opdi_ext_vision_ops[] = {
    {"roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
     "int sampling_ratio, bool aligned) -> Tensor",
     opdi_ext_roi_align_fake, opdi_ext_roi_align_backward, opdi_ext_roi_setup},
    {"_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
     "SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor",
     opdi_ext_roi_align_grad_fake, NULL, NULL},
    {"roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> "
     "(Tensor, Tensor)", opdi_ext_roi_pool_fake, opdi_ext_roi_pool_backward, opdi_ext_roi_setup},
    {"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, "
     "SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
     opdi_ext_roi_pool_grad_fake, NULL, NULL},
    {"ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
     "int sampling_ratio) -> (Tensor, Tensor)",
     opdi_ext_ps_roi_fake, opdi_ext_ps_roi_align_backward, opdi_ext_roi_setup},
    {"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, "
     "SymInt pooled_height, SymInt pooled_width, int sampling_ratio, SymInt batch_size, SymInt channels, "
     "SymInt height, SymInt width) -> Tensor", opdi_ext_ps_align_grad_fake, NULL, NULL},
    {"ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> "
     "(Tensor, Tensor)", opdi_ext_ps_roi_fake, opdi_ext_ps_roi_pool_backward, opdi_ext_roi_setup},
    {"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, "
     "SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) "
     "-> Tensor", opdi_ext_roi_pool_grad_fake, NULL, NULL},
    {"deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
     "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
     "SymInt offset_groups, bool use_mask) -> Tensor",
     opdi_ext_deform_fake, opdi_ext_deform_backward, opdi_ext_deform_setup},
    {"_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
     "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
     "SymInt groups, SymInt offset_groups, bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
     opdi_ext_deform_grad_fake, NULL, NULL}
};
/* Adds what the library has in Python; to an operator that opdispatch.h defined only what is done under autocast. */
static void opdi_ext_vision_add(opdi_ext *ext, const char *schema, bool builtin) {
    char name[60];
    const opdi_ext_vision_op *known = NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(schema, "("), schema);
    for (size_t i = 0; i < sizeof opdi_ext_vision_ops / sizeof *opdi_ext_vision_ops; i++) {
        if (strcmp(opdi_ext_vision_ops[i].schema, schema) == 0) { known = &opdi_ext_vision_ops[i]; }
    }
    const bool nms = strcmp(schema, "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor") == 0;
    if ((known || nms) && !ext->derivatives) {
        ext->derivatives = opd_library_open(OPD_IMPL, "torchvision", NULL, "opdispatch_aoti.h", 0);
    }
    if (!ext->derivatives) { return; }
    if (nms) { (void)opd_autocast_register(ext->derivatives, name, OPD_CPU, OPD_AUTOCAST_FP32); }
    if (known && !builtin) { (void)opd_fake_register(ext->derivatives, name, known->fake); }
    if (known && known->backward && !builtin) {
        (void)opd_autograd_register(ext->derivatives, name, known->backward, known->setup);
    }
    if (strcmp(name, "roi_align") == 0 && known) {
        (void)opd_impl_key(ext->derivatives, name, "AutocastCPU", opdi_ext_roi_align_autocast, NULL, NULL);
    }
}
static int opdi_ext_vision(opdi_ext *ext) {
    for (const opdi_ext_library *library = ext->libraries; library; library = library->next) {
        if (strcmp(library->ns, "torchvision") != 0) { continue; }
        for (const opdi_ext_entry *entry = library->entries; entry && opd_ok(); entry = entry->next) {
            if (!entry->fn) { opdi_ext_vision_add(ext, entry->text, entry->builtin); }
        }
    }
    return opd_ok() ? 0 : -1;
}

//== extensions: loading ===============================================================================================

static void opdi_ext_free(opdi_ext *ext) {
    opdi_aoti_image_free(&ext->model.image);      /* its last code runs here */
    opdi_aoti_image_free(&ext->model.stubs);
    while (ext->libraries) {
        opdi_ext_library *library = ext->libraries;
        ext->libraries = library->next;
        while (library->entries) {
            opdi_ext_entry *entry = library->entries;
            library->entries = entry->next;
            free(entry->signature);
            free(entry->text);
            free(entry);
        }
        free(library->ns);
        free(library->key);
        free(library->file);
        free(library);
    }
    for (int64_t i = 0; i < ext->model.nrows; i++) { free(ext->model.rows[i]); }
    free(ext->model.rows);
    free(ext->model.path);
    free(ext);
}
/* dlsym for extensions: functions of PyTorch's are ours. */
static void *opdi_ext_symbol(void *library, const char *name) {
    void *found = NULL;
    const bool torch = name && (strncmp(name, "aoti_torch_", 11) == 0 || strncmp(name, "torch_", 6) == 0);
    for (size_t i = 0; torch && i < sizeof opdi_aoti_symbols / sizeof *opdi_aoti_symbols; i++) {
        if (strcmp(opdi_aoti_symbols[i].name, name) == 0 && opdi_aoti_symbols[i].kind == OPDI_AOTI_PLAIN) {
            memcpy(&found, &opdi_aoti_symbols[i].fn, sizeof found);
        }
    }
    return torch || library == (void *)&opdi_ext_torch ? found : dlsym(library, name);
}
/* Libraries that need a device: what they have is not called here, so they need not be installed. */
static bool opdi_ext_is_cuda(const char *name) {
    static const char *const begins[] = {"libcuda", "libnv", "libcu", "libamdhip", "libhip"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0 && strncmp(name, "libcurl", 7) != 0) { return true; }
    }
    return false;
}
/* Finds what lies where the library looks for it relative to its own place, as it will be read from another one: its
   path; false: it is not there. */
static bool opdi_ext_beside(const opdi_aoti_elf *elf, const char *needed, char *text, size_t cap) {
    const uint64_t runpath = opdi_aoti_entry(elf, DT_RUNPATH), rpath = opdi_aoti_entry(elf, DT_RPATH);
    const uint64_t at = runpath ? runpath : rpath;
    const char *path = elf->model->path, *slash = strrchr(path, '/');
    const char *part = at < elf->names_size ? elf->names + at : "";
    while (at && *part) {
        const size_t length = strcspn(part, ":");
        if (strncmp(part, "$ORIGIN", 7) == 0 && length < 400) {
            snprintf(text, cap, "%.*s%.*s/%.200s", slash ? (int)(slash - path < 1200 ? slash - path : 1200) : 1,
                     slash ? path : ".", (int)length - 7, part + 7, needed);
            if (access(text, R_OK) == 0) { return true; }
        }
        part += length + (part[length] == ':');
    }
    return false;
}
/* Whether a library is not asked for any more by the one that is loaded: it needs a device, or lies beside it and is
   what our library needs. */
static bool opdi_ext_is_replaced(const opdi_aoti_elf *elf, const char *name) {
    char text[2000];
    return opdi_ext_is_cuda(name) || opdi_ext_beside(elf, name, text, sizeof text);
}
static void opdi_ext_need_beside(const opdi_aoti_elf *elf, opdi_aoti_library *library) {
    char text[2000];
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED || elf->dynamic[i].d_un.d_val >= elf->names_size) { continue; }
        const char *needed = elf->names + elf->dynamic[i].d_un.d_val;
        if (opdi_aoti_is_torch(needed) || opdi_ext_is_cuda(needed) || library->nneeded == 16 ||
            !opdi_ext_beside(elf, needed, text, sizeof text)) {
            continue;
        }
        library->needed[library->nneeded++] = (uint32_t)library->names.length;
        char *whole = realpath(text, NULL);
        opdi_aoti_put(&library->names, whole ? whole : text, strlen(whole ? whole : text) + 1);
        free(whole);
    }
}
/* The library that has the version of a symbol; NULL: it has none. */
static const char *opdi_ext_library_of(const opdi_aoti_elf *elf, size_t symbol) {
    const uint16_t version = elf->versions ? elf->versions[symbol] & 0x7fff : 0;
    uint64_t at = version > 1 ? opdi_aoti_entry(elf, DT_VERNEED) : 0;
    for (uint64_t left = at ? opdi_aoti_entry(elf, 0x6fffffff) : 0; left; left--) {
        const Elf64_Verneed *need = (const Elf64_Verneed *)opdi_aoti_at(elf, at, sizeof *need);
        uint64_t one = need ? at + need->vn_aux : 0;
        for (int i = 0; need && i < need->vn_cnt; i++) {
            const Elf64_Vernaux *aux = (const Elf64_Vernaux *)opdi_aoti_at(elf, one, sizeof *aux);
            if (aux && aux->vna_other == version) { return elf->names + need->vn_file; }
            one += aux ? aux->vna_next : 0;
        }
        at += need ? need->vn_next : 0;
    }
    return NULL;
}
/* Takes the versions of such libraries out of the chain of those that are asked for. */
static void opdi_ext_drop_versions(opdi_aoti_elf *elf) {
    Elf64_Dyn *first = NULL, *count = NULL;
    Elf64_Verneed *before = NULL;
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag == DT_VERNEED) { first = &elf->dynamic[i]; }
        if (elf->dynamic[i].d_tag == 0x6fffffff) { count = &elf->dynamic[i]; }
    }
    uint64_t at = first ? first->d_un.d_ptr : 0;
    for (uint64_t left = at && count ? count->d_un.d_val : 0; left; left--) {
        Elf64_Verneed *need = (Elf64_Verneed *)opdi_aoti_at(elf, at, sizeof *need);
        if (!need) { return; }
        const uint64_t next = need->vn_next ? at + need->vn_next : 0;
        if (!opdi_ext_is_replaced(elf, elf->names + need->vn_file)) { before = need; }
        else {
            if (before) { before->vn_next = next ? before->vn_next + need->vn_next : 0; }
            else { first->d_un.d_ptr = next; }
            count->d_un.d_val--;
        }
        at = next;
    }
    if (count && count->d_un.d_val == 0) { first->d_tag = count->d_tag = 0x6ffffef5; }    /* none is left: no entry */
}
/* What a symbol that an extension asks for is given: a stub of ours, or nothing. */
typedef enum opdi_ext_choice {
    OPDI_EXT_OTHER, OPDI_EXT_STUB, OPDI_EXT_CUDA, OPDI_EXT_MISSING, OPDI_EXT_BESIDE
} opdi_ext_choice;
static opdi_ext_choice opdi_ext_choose(opdi_aoti_elf *elf, size_t i, const char *name) {
    static const char *const ours[] = {"dlopen", "dlclose", "dlsym"};
    const Elf64_Sym *symbol = &elf->symbols[i];
    if (symbol->st_shndx != SHN_UNDEF || !*name || strlen(name) >= 300) { return OPDI_EXT_OTHER; }
    const char *library = opdi_ext_library_of(elf, i);
    if (library && opdi_ext_is_cuda(library)) { return OPDI_EXT_CUDA; }
    if (library && opdi_ext_is_replaced(elf, library)) { return OPDI_EXT_BESIDE; }
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++) {
        if (strcmp(name, ours[k]) == 0) { return OPDI_EXT_STUB; }
    }
    if (elf->versions && (elf->versions[i] & 0x7fff) > 1) { return OPDI_EXT_OTHER; }
    if (!opdi_ext_heap.replace && strcmp(name, OPDI_EXT_STRING_REPLACE) == 0) { return OPDI_EXT_STUB; }
    if (strncmp(name, "aoti_", 5) == 0 || strncmp(name, "torch_", 6) == 0) { return OPDI_EXT_STUB; }
    const bool torch = strstr(name, "3c10") || strstr(name, "2at6") || strstr(name, "5torch");
    return torch && ELF64_ST_BIND(symbol->st_info) != STB_WEAK ? OPDI_EXT_MISSING
        : strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0 ? OPDI_EXT_CUDA : OPDI_EXT_OTHER;
}
static void opdi_ext_note_missing(char *missing, size_t cap, const char *name) {
    const size_t length = strlen(missing);
    if (length + strlen(name) + 16 < cap) {
        snprintf(missing + length, cap - length, "%s%s", length ? ", " : "", name);
    } else if (length + 5 < cap && !strstr(missing, " ...")) { strcat(missing, " ..."); }
}
static int opdi_ext_say_missing(const opdi_aoti_elf *elf, const char *missing, bool cxx) {
    char text[900];
    snprintf(text, sizeof text, cxx ? "the library is written in PyTorch's own C++ (it asks for %.600s), not in its "
             "stable interface" : "the library asks for %.700s: not here", missing);
    return opdi_aoti_bad(elf->model, text);
}
/* One letter of a name in the table stands for "ours"; names may share their ends, so all are changed at once, and
   what is not ours must not be touched: 1 where it would be. */
static bool opdi_ext_shared(const opdi_aoti_elf *elf, const char *names, const uint8_t *choices, size_t at) {
    const size_t place = elf->symbols[at].st_name;
    for (size_t i = 1; i < elf->nsymbols; i++) {
        const size_t first = elf->symbols[i].st_name;
        const bool theirs = choices[i] == OPDI_EXT_OTHER || choices[i] == OPDI_EXT_BESIDE;
        if (theirs && first <= place && place < first + strlen(names + first)) { return true; }
    }
    return false;
}
/* Makes the stub of a symbol, under the name that it has now. */
static int opdi_ext_stub(const opdi_aoti_elf *elf, opdi_aoti_library *library, const char *name, const char *as,
                         opdi_ext_choice choice) {
    if (choice != OPDI_EXT_CUDA) { return opdi_aoti_stub(elf->model, library, name, as); }
    const bool pointer = strcmp(name, "__cudaRegisterFatBinary") == 0 || strcmp(name, "cudaGetErrorString") == 0;
    opdi_aoti_name(library, as);
    opdi_aoti_code_jump(&library->code, pointer ? (opdi_aoti_fn)opdi_ext_cuda_null : (opdi_aoti_fn)opdi_ext_cuda, NULL);
    return 1;
}
/* Makes stubs for all that the library asks for of PyTorch and CUDA. */
static int opdi_ext_bind(opdi_aoti_elf *elf, opdi_aoti_library *library) {
    char missing[700] = "";
    bool cxx = false;
    uint8_t *choices = (uint8_t *)calloc(elf->nsymbols, 1);
    char *names = (char *)malloc(elf->names_size);
    if (!choices || !names) { (void)opdi_aoti_no_memory(); }
    else { memcpy(names, elf->names, elf->names_size); }
    for (size_t i = 1; i < elf->nsymbols && opd_ok(); i++) {
        choices[i] = (uint8_t)opdi_ext_choose(elf, i, names + elf->symbols[i].st_name);
    }
    for (size_t i = 1; i < elf->nsymbols && opd_ok(); i++) {
        const bool ours = choices[i] == OPDI_EXT_STUB || choices[i] == OPDI_EXT_CUDA;
        if (choices[i] == OPDI_EXT_BESIDE) { elf->versions[i] = 1; }
        if (!ours) { continue; }
        if (elf->versions) { elf->versions[i] = 1; }
        if (!opdi_ext_shared(elf, names, choices, i)) { elf->names[elf->symbols[i].st_name] = '.'; }
    }
    for (size_t i = 1; i < elf->nsymbols && opd_ok(); i++) {
        const char *name = names + elf->symbols[i].st_name;
        if (choices[i] == OPDI_EXT_OTHER || choices[i] == OPDI_EXT_BESIDE) { continue; }
        const int there = choices[i] == OPDI_EXT_MISSING ? 0
            : opdi_ext_stub(elf, library, name, elf->names + elf->symbols[i].st_name, (opdi_ext_choice)choices[i]);
        if (there == 0 && ELF64_ST_BIND(elf->symbols[i].st_info) != STB_WEAK) {
            cxx = cxx || choices[i] == OPDI_EXT_MISSING;
            opdi_ext_note_missing(missing, sizeof missing, name);
        }
    }
    if (*missing && opd_ok()) { (void)opdi_ext_say_missing(elf, missing, cxx); }
    free(choices);
    free(names);
    return opd_ok() ? 0 : -1;
}
/* Lets dependencies on PyTorch and CUDA name our library, in the place of the name of one of them. */
static int opdi_ext_redirect(opdi_aoti_elf *elf, const char *name) {
    uint64_t first = 0;
    bool asks = false;
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED) { continue; }
        if (elf->dynamic[i].d_un.d_val >= elf->names_size) { return opdi_aoti_damaged(elf, "what it needs"); }
        const char *needed = elf->names + elf->dynamic[i].d_un.d_val;
        if (!first && opdi_aoti_is_torch(needed) && strlen(needed) >= strlen(name)) {
            first = elf->dynamic[i].d_un.d_val;
        }
    }
    for (size_t i = 1; i < elf->nsymbols; i++) {
        asks = asks || strstr(elf->names + elf->symbols[i].st_name, "oti_torch_library_init_") != NULL;
    }
    if (!asks) {
        return opdi_aoti_bad(elf->model, "the library registers no operators by PyTorch's stable interface (it does "
                             "not ask for aoti_torch_library_init_...)");
    }
    if (!first) { return opdi_aoti_bad(elf->model, "the library was not linked with libtorch (-ltorch)"); }
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED) { continue; }
        const char *needed = elf->names + elf->dynamic[i].d_un.d_val;
        if (opdi_aoti_is_torch(needed) || opdi_ext_is_replaced(elf, needed)) { elf->dynamic[i].d_un.d_val = first; }
    }
    memcpy(elf->names + first, name, strlen(name) + 1);
    return 0;
}
/* Finds a function in the process first, where a sanitizer has its own, then in a library. */
static void opdi_ext_find(void *library, const char *name, void *out) {
    opdi_aoti_find(NULL, name, out);
    if (!*(void **)out) { opdi_aoti_find(library, name, out); }
}
/* The parts of C++ that are needed before an extension's code runs. */
static void opdi_ext_find_cxx(void) {
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    void *unwinder = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !unwinder) { return; }        /* then what is written in C++ cannot be loaded either */
    opdi_ext_find(library, "_Znwm", &opdi_ext_heap.make);
    opdi_ext_find(library, "_ZdlPv", &opdi_ext_heap.unmake);
    opdi_ext_find(library, OPDI_EXT_STRING_REPLACE, &opdi_ext_heap.replace);
    opdi_ext_find(library, "__cxa_begin_catch", &opdi_ext_cxx.caught);
    opdi_ext_find(library, "__cxa_end_catch", &opdi_ext_cxx.done);
    opdi_ext_find(library, "__cxa_current_exception_type", &opdi_ext_cxx.type);
    opdi_ext_find(library, "_ZTISt9exception", &opdi_ext_cxx.base);
    opdi_ext_find(unwinder, "_Unwind_SetGR", &opdi_ext_cxx.set_register);
    opdi_ext_find(unwinder, "_Unwind_SetIP", &opdi_ext_cxx.set_place);
    opdi_ext_find(unwinder, "_Unwind_GetRegionStart", &opdi_ext_cxx.begin);
}
/* Loads the library from memory of its own, which it changes.  Its code runs, and what it registers is noted. */
static int opdi_ext_load_library(opdi_ext *ext, unsigned char *data, size_t size) {
    static uint32_t libraries;
    opdi_aoti_elf elf;
    opdi_aoti_library library;
    opdi_aoti_bytes file;
    char name[16];
    int rc;
    memset(&elf, 0, sizeof elf);
    memset(&library, 0, sizeof library);
    memset(&file, 0, sizeof file);
    elf.model = &ext->model;
    elf.data = data;
    elf.size = size;
    if (opdi_aoti_elf_head(&elf) || opdi_aoti_elf_tables(&elf) || opdi_aoti_elf_check(&elf)) { return -1; }
    snprintf(name, sizeof name, "ope%05x.so", OPDI_AOTI_NEXT(libraries) & 0xfffff);
    opdi_aoti_name(&library, "");
    memset(library.symbols.data, 0, library.symbols.length);
    opdi_aoti_code_common(&library.code);
    opdi_aoti_name(&library, ".call");
    library.call_at = library.code.length;
    opdi_ext_code_call(&library.code);
    library.call_size = library.code.length - library.call_at;
    opdi_ext_need_beside(&elf, &library);
    opdi_ext_find_cxx();
    rc = opdi_ext_bind(&elf, &library);
    if (rc == 0) {
        opdi_ext_drop_versions(&elf);
        rc = opdi_ext_redirect(&elf, name);
    }
    if (rc == 0) {
        opdi_aoti_link(&library, name, &file);
        rc = opd_ok() ? opdi_aoti_image_load(&ext->model, &ext->model.stubs, file.data, file.length) : -1;
    }
    if (rc == 0) {
        opdi_aoti_find(ext->model.stubs.handle, ".call", &ext->call);
        opdi_ext_loading = ext;
        rc = opdi_aoti_image_load(&ext->model, &ext->model.image, data, size);
        opdi_ext_loading = NULL;
        rc = rc == 0 && opd_ok() ? 0 : -1;
    }
    free(library.code.data);
    free(library.names.data);
    free(library.symbols.data);
    free(file.data);
    return rc;
}
static int opdi_ext_read(opdi_ext *ext) {
    struct stat about;
    int rc = -1;
    const int fd = open(ext->model.path, O_RDONLY);
    if (fd < 0 || fstat(fd, &about)) { rc = opdi_aoti_bad(&ext->model, strerror(errno)); }
    else if (!S_ISREG(about.st_mode) || about.st_size == 0) {
        rc = opdi_aoti_bad(&ext->model, "this is no file, or an empty one");
    } else {
        void *data = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) { rc = opdi_aoti_bad(&ext->model, strerror(errno)); }
        else {
            rc = opdi_ext_load_library(ext, (unsigned char *)data, (size_t)about.st_size);
            (void)munmap(data, (size_t)about.st_size);
        }
    }
    if (fd >= 0) { (void)close(fd); }
    return rc;
}
/* Whether a key is one of a device that extensions have no memory on here. */
static bool opdi_ext_is_other_device(const char *key) {
    static const char *const ends[] = {"CUDA", "HIP", "XPU", "MPS", "MTIA", "HPU", "XLA", "PrivateUse1"};
    for (size_t i = 0; key && i < sizeof ends / sizeof *ends; i++) {
        if (opdi_aoti_ends(key, ends[i])) { return true; }
    }
    return false;
}
static int opdi_ext_commit_kernel(opdi_ext *ext, opdi_ext_library *library, opdi_ext_entry *entry) {
    char name[400];
    snprintf(name, sizeof name, "%.150s::%.200s", library->ns, entry->text);
    const opd_op *known = opd_find_quiet(strstr(entry->text, "::") ? entry->text : name);
    if (known && opd_op_schema(known)) {
        opd_op *op = opd_find(opd_op_name(known));
        entry->signature = (opdi_ext_signature *)malloc(sizeof *entry->signature);
        if (!entry->signature) { return opdi_aoti_no_memory(); }
        if (!op || !opdi_ext_signature_of(op, entry->signature)) { return -1; }
    }
    opdi_ext_hold(ext);
    if (opd_impl_key(library->library, entry->text, NULL, opdi_ext_kernel, entry, opdi_ext_kernel_gone) == 0) {
        return 0;
    }
    opdi_ext_let_go(ext);
    return -1;
}
/* Whether an entry defines one of torchvision's operators that opdispatch.h has, too: then that definition stays, with
   its derivative, and gets the library's kernels. */
static bool opdi_ext_is_builtin(const opdi_ext_library *library, const opdi_ext_entry *entry) {
    static const char *const names[] = {"nms(", "roi_align(", "_roi_align_backward("};
    char text[600], name[100];
    opd_op *there = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && strcmp(library->ns, "torchvision") == 0; i++) {
        if (strncmp(entry->text, names[i], strlen(names[i])) != 0) { continue; }
        snprintf(name, sizeof name, "torchvision::%.*s", (int)strlen(names[i]) - 1, names[i]);
        /* a look-up, or a list of the namespace, would register ours */
        for (opd_op *op = opd_op_next(NULL); op && !there; op = opd_op_next(op)) {
            if (strcmp(opd_op_name(op), name) == 0) { there = op; }
        }
    }
    return there && opd_op_schema(there) && opd_schema_print(opd_op_schema(there), text, sizeof text) < sizeof text &&
        strcmp(text + 13, entry->text) == 0;
}
static void opdi_ext_define(opdi_ext *ext, const opdi_ext_library *library, opdi_ext_entry *entry) {
    opd_def_options options;
    memset(&options, 0, sizeof options);
    options.tags = entry->tags & 0xffff;
    entry->builtin = opdi_ext_is_builtin(library, entry);
    if (entry->builtin || opd_def_with(library->library, entry->text, &options) == 0) { ext->operators++; }
}
/* Registers all that was noted: definitions first, then kernels.  0, or -1 with an error. */
static int opdi_ext_commit(opdi_ext *ext) {
    for (opdi_ext_library *library = ext->libraries; library && opd_ok(); library = library->next) {
        if (!library->ns) { return opdi_aoti_bad(&ext->model, "it registers operators without a namespace"); }
        if (opdi_ext_is_other_device(library->key)) { continue; }
        library->library = opd_library_open(library->kind, library->ns, library->key, library->file, library->line);
        for (opdi_ext_entry *entry = library->entries; library->library && entry && opd_ok(); entry = entry->next) {
            if (!entry->fn) { opdi_ext_define(ext, library, entry); }
        }
    }
    for (opdi_ext_library *library = ext->libraries; library && opd_ok(); library = library->next) {
        for (opdi_ext_entry *entry = library->entries; entry && opd_ok(); entry = entry->next) {
            if (!entry->fn) { continue; }
            if (!library->library) { ext->skipped++; }
            else { (void)opdi_ext_commit_kernel(ext, library, entry); }
        }
    }
    ext->committed = true;
    return opd_ok() ? 0 : -1;
}
/* Undoes all that was registered, and lets the library go when nothing needs its code. */
static void opdi_ext_undo(opdi_ext *ext) {
    opd_library_close(ext->derivatives);
    ext->derivatives = NULL;
    for (opdi_ext_library *library = ext->libraries; library; library = library->next) {
        if (library->library) { opd_library_close(library->library); }
        library->library = NULL;
    }
    opdi_ext_let_go(ext);
}
static opdi_ext **opdi_ext_place(const char *path) {
    opdi_ext **place = &opdi_ext_first;
    while (*place && strcmp((*place)->model.path, path) != 0) { place = &(*place)->next; }
    return place;
}
static int opdi_ext_loaded(const char *path) {
    (void)pthread_mutex_lock(&opdi_ext_lock);
    const opdi_ext *ext = *opdi_ext_place(path);
    const int operators = ext ? ext->operators : -1;
    (void)pthread_mutex_unlock(&opdi_ext_lock);
    return operators;
}
/* An error of the registry's, with the path in front. */
static void opdi_ext_explain(const opdi_ext *ext) {
    char text[1200];
    const opd_code code = opd_error_code();
    if (strncmp(opd_error_message(), "opd_extension_load", 18) == 0) { return; }
    snprintf(text, sizeof text, "%s", opd_error_message());
    opd_error_clear();
    (void)opd_fail(code, "opd_extension_load: %.400s: %s", ext->model.path, text);
}
static int opdi_ext_load(const char *path) {
    if (!path) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_extension_load: the path is NULL"); }
    const int before = opdi_ext_loaded(path);
    if (before >= 0) { return before; }
    opdi_ext *ext = (opdi_ext *)calloc(1, sizeof *ext);
    if (!ext || !(ext->model.path = opdi_aoti_copy_text(path, strlen(path)))) {
        free(ext);
        return opdi_aoti_no_memory();
    }
    ext->model.who = "opd_extension_load";
    ext->model.image.fd = ext->model.stubs.fd = -1;
    ext->holds = 1;
    if (opdi_ext_read(ext) || opdi_ext_commit(ext) || opdi_ext_vision(ext)) {
        opdi_ext_explain(ext);
        opdi_ext_undo(ext);
        return -1;
    }
    (void)pthread_mutex_lock(&opdi_ext_lock);
    ext->next = opdi_ext_first;
    opdi_ext_first = ext;
    (void)pthread_mutex_unlock(&opdi_ext_lock);
    return ext->operators;
}
int opd_extension_load(const char *path) {
    if (!opd_ok()) { return -1; }
    (void)pthread_mutex_lock(&opdi_ext_load_lock);            /* one at a time */
    const int operators = opdi_ext_load(path);
    (void)pthread_mutex_unlock(&opdi_ext_load_lock);
    return operators;
}
int opd_extension_unload(const char *path) {
    (void)pthread_mutex_lock(&opdi_ext_lock);
    opdi_ext **place = path ? opdi_ext_place(path) : NULL;
    opdi_ext *ext = place ? *place : NULL;
    if (ext) { *place = ext->next; }
    (void)pthread_mutex_unlock(&opdi_ext_lock);
    if (!ext) {
        return opd_fail(OPD_ERROR_NOT_FOUND, "opd_extension_unload: %.400s is not loaded", path ? path : "NULL");
    }
    opdi_ext_undo(ext);
    return 0;
}

#if defined(OPDISPATCH_IN_TORCH)

//== the reverse: operators of ours in PyTorch =========================================================================
//
// When the library that this is part of is loaded into PyTorch, the operators that its sources define are registered
// there.  A kernel gets no word of its own from PyTorch, so each has a stub that hands over its row.

typedef struct opdi_torch_row {
    opd_op *op;
    opdi_ext_signature signature;
    bool gradient;               /* calls the operator's derivative */
} opdi_torch_row;
/* PyTorch's functions, by name: found when the library is loaded. */
static struct {
    int32_t (*fragment)(const char *ns, const char *file, uint32_t line, void **out);
    int32_t (*implementation)(const char *ns, const char *key, const char *file, uint32_t line, void **out);
    int32_t (*forget)(void *library);
    int32_t (*define)(void *library, const char *schema);
    int32_t (*kernel)(void *library, const char *name, opdi_ext_fn fn, uint64_t version);
    int32_t (*data)(void *handle, void **out);
    int32_t (*ndim)(void *handle, int64_t *out);
    int32_t (*sizes)(void *handle, int64_t **out);
    int32_t (*strides)(void *handle, int64_t **out);
    int32_t (*dtype)(void *handle, int32_t *out);
    int32_t (*device)(void *handle, int32_t *out);
    int32_t (*defined)(void *handle, bool *out);
    int32_t (*again)(void *handle, void **out);
    int32_t (*undefined)(void **out);
    int32_t (*empty)(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device,
                     int32_t index, void **out);
    const char *(*what)(void);   /* of the last failure; NULL: a PyTorch before 2.13 */
    opdi_ext_side side;
} opdi_torch;
OPDI_AOTI_THREAD const opdi_ext_taken *opdi_torch_taken;      /* the arguments of the call */

static const char *opdi_torch_find(void *library) {
    const struct { const char *name; void *to; } functions[] = {
        {"aoti_torch_library_init_fragment", &opdi_torch.fragment},
        {"aoti_torch_library_init_impl", &opdi_torch.implementation},
        {"aoti_torch_delete_library_object", &opdi_torch.forget}, {"aoti_torch_library_def", &opdi_torch.define},
        {"torch_library_impl", &opdi_torch.kernel}, {"aoti_torch_get_data_ptr", &opdi_torch.data},
        {"aoti_torch_get_dim", &opdi_torch.ndim}, {"aoti_torch_get_sizes", &opdi_torch.sizes},
        {"aoti_torch_get_strides", &opdi_torch.strides}, {"aoti_torch_get_dtype", &opdi_torch.dtype},
        {"aoti_torch_get_device_type", &opdi_torch.device}, {"aoti_torch_is_defined", &opdi_torch.defined},
        {"aoti_torch_new_tensor_handle", &opdi_torch.again},
        {"aoti_torch_new_uninitialized_tensor", &opdi_torch.undefined},
        {"aoti_torch_empty_strided", &opdi_torch.empty}, {"torch_new_list_reserve_size", &opdi_torch.side.list_new},
        {"torch_list_size", &opdi_torch.side.list_size}, {"torch_list_get_item", &opdi_torch.side.list_get},
        {"torch_list_push_back", &opdi_torch.side.list_push}, {"torch_delete_list", &opdi_torch.side.list_free},
        {"torch_new_string_handle", &opdi_torch.side.text_new}, {"torch_string_c_str", &opdi_torch.side.text_data},
        {"torch_delete_string", &opdi_torch.side.text_free},
        {"aoti_torch_delete_tensor_object", &opdi_torch.side.tensor_free}
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        opdi_aoti_find(library, functions[i].name, functions[i].to);
        if (!*(void **)functions[i].to) { return functions[i].name; }
    }
    opdi_aoti_find(library, "torch_exception_get_what_without_backtrace", &opdi_torch.what);
    return NULL;
}
static const char *opdi_torch_why(void) {
    const char *text = opdi_torch.what ? opdi_torch.what() : NULL;
    return text ? text : "PyTorch refuses it";
}
static int opdi_torch_check(int32_t rc) { return rc ? opd_fail(OPD_ERROR_ARGUMENT, "%s", opdi_torch_why()) : 0; }
/* A tensor of PyTorch's as one of ours over the same memory. */
static opd_tensor *opdi_torch_take(void *handle) {
    int64_t ndim = 0, *sizes = NULL, *strides = NULL;
    int32_t dtype = 0, device = 0;
    void *data = NULL;
    bool defined = false;
    if (opdi_torch_check(opdi_torch.defined(handle, &defined)) || !defined) { return NULL; }
    if (opdi_torch_check(opdi_torch.ndim(handle, &ndim) || opdi_torch.sizes(handle, &sizes) ||
                         opdi_torch.strides(handle, &strides) || opdi_torch.dtype(handle, &dtype) ||
                         opdi_torch.device(handle, &device))) {
        return NULL;
    }
    if (device != 0 && device != 14) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a tensor on a device: operators of this library run on the CPU");
        return NULL;
    }
    if (ndim > OPD_MAX_DIMS || !opd_dtype_size((opd_scalar_type)dtype)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a tensor of %d dims, or of a dtype that is not known", (int)ndim);
        return NULL;
    }
    if (device == 14) {                           /* meta: sizes without memory */
        return opd_to_device(opd_empty_strided(opd_ints_of(sizes, ndim), opd_ints_of(strides, ndim),
                                               (opd_scalar_type)dtype),
                             opd_device_of(OPD_META, -1), (opd_scalar_type)dtype);
    }
    if (opdi_torch_check(opdi_torch.data(handle, &data))) { return NULL; }
    return data ? opd_tensor_wrap(data, opd_ints_of(sizes, ndim), strides, (opd_scalar_type)dtype, NULL, NULL)
        : opd_empty_strided(opd_ints_of(sizes, ndim), opd_ints_of(strides, ndim), (opd_scalar_type)dtype);
}
/* A result as a tensor of PyTorch's: the argument that it is, or a copy. */
static int32_t opdi_torch_give(opd_tensor *tensor, void **out) {
    int64_t strides[OPD_MAX_DIMS], step = 1;
    void *data = NULL;
    if (!tensor) { return opdi_torch.undefined(out); }
    for (const opdi_ext_taken *taken = opdi_torch_taken; taken; taken = taken->next) {
        if (taken->tensor == tensor) { return opdi_torch.again(taken->handle, out); }
    }
    const int ndim = opd_ndim(tensor);
    const bool meta = opd_tensor_device(tensor).type == OPD_META;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= opd_size(tensor, i) > 1 ? opd_size(tensor, i) : 1;
    }
    if (opdi_torch_check(opdi_torch.empty(ndim, opd_sizes(tensor), strides, (int32_t)opd_dtype(tensor), meta ? 14 : 0,
                                          -1, out))) {
        return 1;
    }
    if (meta || opd_numel(tensor) == 0 || opdi_torch_check(opdi_torch.data(*out, &data))) { return 0; }
    (void)opd_copy_(opd_tensor_wrap(data, opd_ints_of(opd_sizes(tensor), ndim), strides, opd_dtype(tensor), NULL, NULL),
                    opd_detach(tensor));
    return 0;
}
/* Gradients of what an operator gives by its arguments: one for each, NULL where there is none. */
static int opdi_torch_gradient(const opdi_torch_row *row, opd_value *values, opd_tensor **grads) {
    const int nargs = row->signature.nargs - 1;
    opd_tensor *outputs[OPD_MAX_ARGS], *given[OPD_MAX_ARGS], *inputs[OPD_MAX_ARGS], *found[OPD_MAX_ARGS];
    opd_value rets[OPD_MAX_ARGS];
    opd_backward_options options;
    int where[OPD_MAX_ARGS], count = 0, ninputs = 0;
    for (int i = 0; i < nargs; i++) {
        opd_tensor *tensor = values[1 + i].tag == OPD_TAG_TENSOR ? values[1 + i].u.t : NULL;
        grads[i] = NULL;
        if (!tensor || !opd_dtype_is_floating(opd_dtype(tensor))) { continue; }
        inputs[ninputs] = opd_tensor_set_requires_grad(opd_detach(tensor), true);
        values[1 + i] = opd_value_tensor(inputs[ninputs]);
        where[ninputs++] = i;
    }
    for (int i = 0; i < OPD_MAX_ARGS; i++) { rets[i] = opd_value_none(); }
    if (!opd_ok() || opd_call_all(row->op, rets, values + 1, nargs)) { return -1; }
    for (int i = 0; i < values[0].n; i++) {
        const opd_value grad = opdi_ext_item(&values[0], i);
        if (grad.tag != OPD_TAG_TENSOR || rets[i].tag != OPD_TAG_TENSOR || !opd_tensor_requires_grad(rets[i].u.t)) {
            continue;
        }
        outputs[count] = rets[i].u.t;
        given[count++] = grad.u.t;
    }
    if (count == 0 || ninputs == 0) { return 0; }
    memset(&options, 0, sizeof options);
    options.grad_outputs = given;
    options.allow_unused = true;
    if (opd_autograd_grad(outputs, count, inputs, ninputs, &options, found)) { return -1; }
    for (int i = 0; i < ninputs; i++) { grads[where[i]] = found[i]; }
    return 0;
}
static void opdi_torch_run(const opdi_torch_row *row, uint64_t *stack) {
    const opdi_ext_signature *signature = &row->signature;
    opd_value values[OPD_MAX_ARGS], rets[OPD_MAX_ARGS];
    opd_tensor *grads[OPD_MAX_ARGS];
    opdi_ext_taken *taken = NULL;
    int rc = 0;
    for (int i = 0; i < signature->nargs; i++) {
        values[i] = opdi_ext_take(&opdi_torch.side, &signature->args[i], stack[i], &taken);
    }
    for (int i = 0; i < OPD_MAX_ARGS; i++) { rets[i] = opd_value_none(); }
    if (opd_ok() && row->gradient) {
        rc = opdi_torch_gradient(row, values, grads);
        rets[0] = opd_value_tensors(grads, signature->nargs - 1);
    } else if (opd_ok()) { rc = opd_call_all(row->op, rets, values, signature->nargs); }
    opdi_torch_taken = taken;
    for (int i = 0; i < signature->nrets && rc == 0 && opd_ok(); i++) {
        stack[i] = opdi_ext_give(&opdi_torch.side, &signature->rets[i], &rets[i]);
    }
    opdi_torch_taken = NULL;
    opdi_ext_give_back(taken);
}
/* What PyTorch calls, with the row in place of how many results are wanted: an error is thrown. */
static void opdi_torch_kernel(uint64_t *stack, uint64_t nargs, const opdi_torch_row *row) {
    char text[2000];
    (void)nargs;
    opd_scope scope = opd_scope_open();
    opdi_torch_run(row, stack);
    opd_scope_close(&scope);
    if (opd_ok()) { return; }
    snprintf(text, sizeof text, "%s", opd_error_message());
    opd_error_clear();
    void *exception = opdi_aoti_cxx.allocate(2 * sizeof(void *));
    opdi_aoti_cxx.construct(exception, text);
    opdi_aoti_cxx.throws(exception, opdi_aoti_cxx.type, opdi_aoti_cxx.destroy);
}

/* The rows of an operator, and its schema without a namespace: NAME, and NAME_vjp(Tensor?[] grads, ...) where it has a
   derivative and no list of tensors. */
typedef struct opdi_torch_entry { opdi_torch_row row; char ns[64], schema[4100], name[200]; } opdi_torch_entry;
static bool opdi_torch_entry_of(opd_op *op, bool gradient, opdi_torch_entry *entry) {
    char text[4000];
    const opd_op_desc *card = opd_op_card(op);
    const char *colons = strstr(opd_op_name(op), "::"), *dot = colons ? strchr(colons, '.') : NULL;
    if (!colons || !opd_op_schema(op) || colons - opd_op_name(op) >= 60 || strlen(colons) > 150 ||
        opd_schema_print(opd_op_schema(op), text, sizeof text) >= sizeof text) {
        return false;
    }
    memset(entry, 0, sizeof *entry);
    entry->row.op = op;
    entry->row.gradient = gradient;
    memcpy(entry->ns, opd_op_name(op), (size_t)(colons - opd_op_name(op)));
    const char *schema = strstr(text, "::") + 2, *args = strchr(schema, '(') + 1;
    snprintf(entry->name, sizeof entry->name, "%s", colons + 2);
    snprintf(entry->schema, sizeof entry->schema, "%s", schema);
    if (gradient) {
        const bool formula = card && card->backward && card->backward != OPD_NOT_DIFFERENTIABLE;
        if (!card || (!formula && !card->composite) || strchr(args, '!') ||
            strstr(args, "Tensor[]") || strstr(args, "Tensor?[]") || strchr(args, '*')) {
            return false;
        }
        const int length = (int)(dot ? dot - colons - 2 : (long)strlen(colons + 2));
        snprintf(entry->name, sizeof entry->name, "%.*s_vjp%s", length, colons + 2, dot ? dot : "");
        const char *end = strstr(args, ") ->");
        snprintf(entry->schema, sizeof entry->schema, "%s(Tensor?[] grads, %.*s) -> Tensor?[]", entry->name,
                 (int)(end ? end - args : 0), args);
    }
    return opdi_ext_read_signature(entry->schema, &entry->row.signature);
}
/* The namespaces of operators that are built in. */
static bool opdi_torch_is_ours(const opd_op *op) {
    static const char *const builtin[] = {"aten::", "torchvision::", "prim::", "prims::", "_c10d_functional::",
                                          "c10d::", "quantized::", "_quantized::"};
    for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++) {
        if (strncmp(opd_op_name(op), builtin[i], strlen(builtin[i])) == 0) { return false; }
    }
    return true;
}
static int opdi_torch_register_one(const opdi_torch_entry *entry, opdi_ext_fn fn, void **libraries) {
    static const char *const keys[] = {"CPU", "Meta", "CompositeExplicitAutograd"};
    const opd_op_desc *card = opd_op_card(entry->row.op);
    const bool any = card && card->any;           /* also where no argument is a tensor */
    const int first = any ? 2 : 0, last = any ? 2 : entry->row.gradient ? 0 : 1;
    const uint64_t version = (uint64_t)2 << 56 | (uint64_t)10 << 48;
    if (opdi_torch_check(opdi_torch.fragment(entry->ns, "opdispatch_aoti.h", __LINE__, &libraries[0])) ||
        opdi_torch_check(opdi_torch.define(libraries[0], entry->schema))) {
        return -1;
    }
    for (int i = first; i <= last; i++) {
        if (opdi_torch_check(opdi_torch.implementation(entry->ns, keys[i], "opdispatch_aoti.h", __LINE__,
                                                       &libraries[1 + i - first])) ||
            opdi_torch_check(opdi_torch.kernel(libraries[1 + i - first], entry->name, fn, version))) {
            return -1;
        }
    }
    return 0;
}
/* Makes the stubs, and registers; 0, or -1 with an error and nothing registered. */
static int opdi_torch_register(opdi_torch_entry *entries, int count) {
    static opd_aoti model;
    opdi_aoti_library library;
    opdi_aoti_bytes file;
    char name[24];
    memset(&library, 0, sizeof library);
    memset(&file, 0, sizeof file);
    model.who = "operators for PyTorch";
    model.path = (char *)(uintptr_t)"stubs";
    opdi_aoti_name(&library, "");
    memset(library.symbols.data, 0, library.symbols.length);
    opdi_aoti_code_common(&library.code);
    for (int i = 0; i < count; i++) {
        const uint64_t row = (uint64_t)(uintptr_t)&entries[i].row;
        snprintf(name, sizeof name, ".k%d", i);
        opdi_aoti_name(&library, name);
        opdi_aoti_code_jump(&library.code, (opdi_aoti_fn)opdi_torch_kernel, &row);
    }
    opdi_aoti_link(&library, "opdtorch.so", &file);
    void **libraries = (void **)calloc(3 * (size_t)count + 1, sizeof *libraries);
    if (!libraries) { (void)opdi_aoti_no_memory(); }
    if (opd_ok()) { (void)opdi_aoti_image_load(&model, &model.stubs, file.data, file.length); }
    for (int i = 0; i < count && opd_ok(); i++) {
        opdi_ext_fn fn = NULL;
        snprintf(name, sizeof name, ".k%d", i);
        opdi_aoti_find(model.stubs.handle, name, &fn);
        (void)opdi_torch_register_one(&entries[i], fn, libraries + 3 * i);
    }
    for (int i = 3 * count - 1; i >= 0 && libraries && !opd_ok(); i--) {
        if (libraries[i]) { (void)opdi_torch.forget(libraries[i]); }
    }
    free(libraries);                              /* what is registered stays until the process ends */
    free(library.code.data);
    free(library.names.data);
    free(library.symbols.data);
    free(file.data);
    return opd_ok() ? 0 : -1;
}
/* Runs when PyTorch loads the library, behind what its sources have linked. */
__attribute__((constructor)) static void opdi_torch_load(void) {
    void *library = dlopen("libtorch_cpu.so", RTLD_NOW | 4 /* only if it is there */);
    const char *missing = library ? opdi_torch_find(library) : "libtorch_cpu.so (import torch first)";
    int count = 0, room = 0;
    if (missing) {
        opd_warn("operators for PyTorch: there is no %s: PyTorch 2.10 or later is needed", missing);
        return;
    }
    if (!opdi_aoti_find_cxx(library)) {
        opd_warn("operators for PyTorch: there is no C++ library");
        return;
    }
    opdi_ext_find_cxx();
    opdi_torch.side.cell_new = opdi_ext_cell_new;
    opdi_torch.side.cell_free = opdi_ext_cell_free;
    opdi_torch.side.tensor_give = opdi_torch_give;
    opdi_torch.side.tensor_take = opdi_torch_take;
    (void)opd_find_quiet("");                     /* the blocks of the sources run */
    for (opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) { room += 2; }
    opdi_torch_entry *entries = (opdi_torch_entry *)calloc((size_t)room + 1, sizeof *entries);
    for (opd_op *op = opd_op_next(NULL); op && entries; op = opd_op_next(op)) {
        if (!opdi_torch_is_ours(op)) { continue; }
        if (!opdi_torch_entry_of(op, false, &entries[count])) {
            opd_warn("operators for PyTorch: %s is left out: its schema is not one that is handed over",
                     opd_op_name(op));
            continue;
        }
        count++;
        if (opdi_torch_entry_of(op, true, &entries[count])) { count++; }
    }
    if (opd_ok() && entries && count == 0) {
        opd_warn("operators for PyTorch: the library defines none (opdispatch_aoti.h must be the last source)");
    }
    if (opd_ok() && entries) { (void)opdi_torch_register(entries, count); }
    if (!opd_ok()) {
        opd_warn("operators for PyTorch: none is registered: %s", opd_error_message());
        opd_error_clear();
    }
}

#endif

#ifdef __cplusplus
}
#endif

#endif /* OPDI_AOTI_THERE */
#endif /* OPDISPATCH_AOTI_IMPLEMENTATION */
