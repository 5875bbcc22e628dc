//----------------------------------------------------------------------------------------------------------------------
//  >>api:aoti     models that AOTInductor compiled, and extensions of PyTorch, without libtorch
//
//  #define OPD_AOTI above the include of this header, in exactly one C or C++ file, makes that file implement what
//  stands here; it may be the one with OPDISPATCH_IMPLEMENTATION.  Plug-ins cannot call it.  Linux on x86-64 and
//  aarch64; models for the CPU.
//
//  Models.  torch._inductor.aoti_compile_and_package turns an exported program into a shared library with C++
//  kernels for one machine.  The library calls back into PyTorch by a table of C functions: it makes tensors, frees
//  them, and calls operators that were not compiled.  Here the built-in operators serve these functions.  The
//  program is linked as always (-lm, not with -rdynamic).  The C++ library that models are linked with
//  (libstdc++.so.6, often libgomp.so.1) must be installed; libtorch need not be, and is not loaded where it is.
//      opd_aoti *model = opd_aoti_load("model.pt2", NULL);
//      opd_tensor *out[1];
//      if (opd_aoti_run(model, OPD_TENSORS(x), out, 1) == 1) { opd_print(out[0]); }
//      opd_aoti_free(model);
//
//  Extensions are libraries of operators for the stable C interface of PyTorch 2.9 and later (STABLE_TORCH_LIBRARY
//  of torch/csrc/stable/library.h).  They register their operators here, with kernels for the CPU and those that
//  are composed of other operators.  Kernels for other devices are left out, and so are the libraries that only
//  those need: CUDA need not be installed.  The program gives what is not in the binary: derivatives
//  (opd_autograd_register) and fake kernels (opd_fake_register), which users of PyTorch register in Python.  Those
//  of torchvision are here.  Scalars and generators are not handed over, as in PyTorch.  torch_parallel_for runs on
//  the calling thread.
//      opd_extension_load("torchvision/_C_stable.so");
//      opd_tensor *kept = OPD_CALL(opd_find("torchvision::nms"), boxes, scores, 0.5);
//
//  The reverse.  A file of operators (OPD_LIBRARY blocks, as of a plug-in) becomes a library that
//  torch.ops.load_library of PyTorch 2.10 and later loads:
//      cc -O2 -shared -fPIC -DOPDISPATCH_IN_TORCH ops.c -x c opdispatch.h -o ops.so -lm
//  The header is compiled itself, as the last source.  The operators are torch.ops.NAMESPACE.NAME, on CPU and meta
//  tensors; an operator whose kernel is for all devices needs no tensor.  Arguments are not copied, results are.  An
//  operator with a derivative comes with NAME_vjp(Tensor?[] grads, its arguments) -> Tensor?[], for
//  torch.library.register_autograd: PyTorch takes formulas from Python alone.  PyTorch's headers and libraries are
//  not needed.  See examples/plugin_in_torch.py.
//
//  Trust.  A compiled model is a program: to load one runs its code, with all that this process may do.  The
//  archive, the machine and the library's tables are checked before.
//----------------------------------------------------------------------------------------------------------------------

#if (!defined(OPD_STATIC) && !defined(OPDISPATCH_PLUGIN)) || defined(OPD_AOTI)
#define OPDI_AOTI_DECLARED
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
/* Runs it; inputs are CPU tensors.  Fills outputs (tensors of the innermost scope; NULL: the model gives None there)
   and returns how many there are, or -1 with an error: another number of inputs than it has, sizes, dtypes or strides
   that it was not compiled for, an operator that failed.  There is no derivative: with grad mode on, inputs that
   require grad are an error.  What the model writes into its buffers stays there for the next run; into inputs, in
   them. */
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
   nothing.  If a kernel throws, the call fails with the text of the exception.  Kernels for other devices than the CPU
   are left out. */
OPD_API int opd_extension_load(const char *path);
/* Undoes everything that it registered, by the path it was loaded from.  Its code stays while tensors need it.  0, or
   -1 with an error. */
OPD_API int opd_extension_unload(const char *path);

#ifdef __cplusplus
}
#endif
#endif

