//----------------------------------------------------------------------------------------------------------------------
//  >>api:aoti     models that AOTInductor compiled, and extensions of PyTorch, without libtorch (may change)
//
//  Define OPD_AOTI above the include of this header, in exactly one C or C++ file, to implement this section there.
//  The file may be the one that defines OPDISPATCH_IMPLEMENTATION.  Plug-ins cannot call these functions.  The
//  functions work on Linux on x86-64 and aarch64, with models for the CPU.
//
//  Models.  torch._inductor.aoti_compile_and_package turns an exported program into a shared library with C++ kernels
//  for one machine.  The library calls back into PyTorch by a table of C functions, which make and free tensors and
//  call operators that were not compiled.  In opdispatch, the built-in operators implement these functions.  The
//  program is linked as always (-lm, not with -rdynamic).  The C++ library that models are linked with (libstdc++.so.6,
//  often libgomp.so.1) must be installed.  libtorch is not needed, and is not loaded if it is installed.
//      opd_aoti *model = opd_aoti_load("model.pt2", NULL);
//      opd_tensor *out[1];
//      if (opd_aoti_run(model, OPD_TENSORS(x), out, 1) == 1) { opd_print(out[0]); }
//      opd_aoti_free(model);
//
//  Extensions are libraries of operators for the stable C interface of PyTorch 2.9 and later (STABLE_TORCH_LIBRARY of
//  torch/csrc/stable/library.h).  Loading an extension registers its operators, with kernels for the CPU and kernels
//  that are composed of other operators.  Kernels for other devices are left out, and so are the libraries that only
//  those kernels need: CUDA need not be installed.  PyTorch registers the derivatives and fake kernels of such
//  operators in Python, so the library does not contain them.  Here, the C program registers them
//  (opd_autograd_register, opd_fake_register).  The derivatives and fake kernels of torchvision's operators are built
//  in.  As in PyTorch, Scalars and generators cannot be passed to an extension.  torch_parallel_for runs on the calling
//  thread.
//      opd_extension_load("torchvision/_C_stable.so");
//      opd_tensor *kept = OPD_CALL(opd_find("torchvision::nms"), boxes, scores, 0.5);
//
//  Operators for PyTorch.  A file of operators (OPD_LIBRARY blocks, as in a plug-in) can be compiled to a library that
//  torch.ops.load_library of PyTorch 2.10 and later loads:
//      cc -O2 -shared -fPIC -DOPDISPATCH_IN_TORCH ops.c -x c opdispatch.h -o ops.so -lm
//  The header itself is compiled as the last source.  The operators are torch.ops.NAMESPACE.NAME, on CPU and meta
//  tensors.  An operator whose kernel is for all devices needs no tensor.  Arguments are not copied, but results are
//  copied.  An operator with a derivative comes with NAME_vjp(Tensor?[] grads, its arguments) -> Tensor?[], for
//  torch.library.register_autograd, since PyTorch takes backward functions from Python alone.  PyTorch's headers and
//  libraries are not needed.  See examples/plugin_in_torch.py.
//
//  Trust.  A compiled model is a program: loading it runs its code, with all rights of this process.  Before that, the
//  archive, the machine and the library's tables are checked.
//----------------------------------------------------------------------------------------------------------------------

#if (!defined(OPD_STATIC) && !defined(OPDISPATCH_PLUGIN)) || defined(OPD_AOTI)
#define OPDI_AOTI_DECLARED
#ifdef __cplusplus
extern "C" {
#endif

/* A compiled model.  Any thread may run it, and several threads at once. */
typedef struct opd_aoti opd_aoti;
/* Options of opd_aoti_load. */
typedef struct opd_aoti_options {
    const char *name;            /* the name of the model in the package; NULL: "model" or, if there is none, the first
                                    model */
    int copies;                  /* the number of runs that may go on at the same time (0 means 1); further runs wait */
    bool unchecked;              /* sizes, strides and dtypes of inputs and of operators' results are not checked: a run
                                    has less work, but crashes if they are wrong */
} opd_aoti_options;
/* Loads a model from a package (.pt2), or from a library (.so) that was taken out of a package.  If options is NULL,
   defaults are used.  The model belongs to the caller, who frees it with opd_aoti_free.  Returns NULL with an error if
   the file is missing, damaged, or made for another machine, device or instruction set (see opd_plugin_lacks), or if
   it needs functions that opdispatch does not have (the error names them). */
OPD_NEW opd_aoti *opd_aoti_load(const char *path, const opd_aoti_options *options);
/* Frees a model.  If runs of the model are still going on, the model is freed when they have ended.  Results of earlier
   runs stay valid.  The model may be NULL. */
OPD_NEW void opd_aoti_free(opd_aoti *model);
/* Returns the name of the model in its package. */
OPD_NEW const char *opd_aoti_name(const opd_aoti *model);
/* Returns the name of the i-th model in the package that `model` was loaded from; NULL beyond the last. */
OPD_NEW const char *opd_aoti_file_name(const opd_aoti *model, int i);
/* Returns the package's text about the model under a key such as "AOTI_CPU_ISA"; NULL if the key is missing. */
OPD_NEW const char *opd_aoti_metadata(const opd_aoti *model, const char *key);
/* opd_aoti_ninputs and opd_aoti_noutputs return the number of inputs and outputs of a model.  Each tensor in a list or
   dict counts as one input or output. */
OPD_NEW int opd_aoti_ninputs(const opd_aoti *model);
OPD_NEW int opd_aoti_noutputs(const opd_aoti *model);
/* opd_aoti_input_name and opd_aoti_output_name return the compiler's name of the i-th input or output. */
OPD_NEW const char *opd_aoti_input_name(const opd_aoti *model, int i);
OPD_NEW const char *opd_aoti_output_name(const opd_aoti *model, int i);
/* Runs a model.  The inputs are CPU tensors.  Writes the results to outputs, which has room for `cap` tensors: they
   belong to the innermost scope, and an output that is None is NULL.  Returns the number of outputs.  Returns -1 with
   an error if the number of inputs is wrong, if the model was not compiled for the sizes, dtypes or strides of the
   inputs, or if an operator fails.
   A model has no derivative: if grad mode is on and an input requires grad, the run fails.  A model that writes into
   its buffers or its inputs changes them: buffers keep the new values for the next run. */
OPD_NEW int opd_aoti_run(opd_aoti *model, opd_tensors inputs, opd_tensor **outputs, int cap);
/* An opd_transform_fn that runs a model as opd_aoti_run does.  Pass the model as `model`.  outputs has room for
   OPD_TRANSFORM_OUTPUTS tensors. */
OPD_NEW int opd_aoti_function(void *model, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* A constant of a model: a parameter, a buffer or a value that the compiler folded.  The names live as long as the
   model. */
typedef struct opd_aoti_constant {
    const char *name;            /* PyTorch's name, such as "layers.0.weight"; the compiler's name if the constant was
                                    folded */
    const char *symbol;          /* the compiler's name */
    opd_scalar_type dtype;
    int64_t bytes;               /* the stored size, rounded up to a multiple of 64 */
    bool folded;                 /* computed from other constants, by the compiler or before the first run */
    bool buffer;                 /* not a parameter; runs may write into it */
} opd_aoti_constant;
/* Returns the number of constants of a model. */
OPD_NEW int64_t opd_aoti_constants(const opd_aoti *model);
/* Writes a description of the i-th constant to *constant.  Returns 0, or -1 with an error. */
OPD_NEW int opd_aoti_constant_at(const opd_aoti *model, int64_t i, opd_aoti_constant *constant);
/* Returns a copy of the constant of that name or symbol, with its present value: runs may have changed buffers.  On
   failure returns NULL with an error.  Always fails if the model was compiled by PyTorch before 2.10: such a model does
   not give access to its constants. */
OPD_NEW opd_tensor *opd_aoti_constant_get(opd_aoti *model, const char *name);
/* Gives constants new values.  names[i] is the name or the symbol of a constant.  tensors[i] has the new value: a
   tensor of the dtype and size of the constant, which is copied.  The model must not be running.  A model that was
   compiled without its weights needs all of them before its first run.  Returns 0.  On failure, changes nothing and
   returns -1 with an error. */
OPD_NEW int opd_aoti_update(opd_aoti *model, const char *const *names, opd_tensors tensors);

/* Loads an extension of PyTorch, such as torchvision's _C_stable.so: a library that registers operators by the stable
   interface of PyTorch 2.9 and later (torch/csrc/stable, aoti_torch_library_...).  Returns the number of operators that
   the library defines; 0 if it only gives kernels to operators of other libraries.  The new operators can be called,
   traced and saved like all others, and differentiated if they have a derivative.  Kernels for other devices than the
   CPU are left out.  If a kernel throws, the call fails with the text of the exception.  Loading a library again does
   nothing.
   If the file is missing, damaged or for another machine, if it needs functions that opdispatch does not have, or if a
   registration fails, nothing is registered.  The function then returns -1 with an error, which names missing
   functions. */
OPD_NEW int opd_extension_load(const char *path);
/* Undoes all registrations of an extension; path is the path that it was loaded from.  The code stays in memory until
   the tensors that need it are freed.  Returns 0, or -1 with an error. */
OPD_NEW int opd_extension_unload(const char *path);

#ifdef __cplusplus
}
#endif
#endif

