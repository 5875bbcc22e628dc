//----------------------------------------------------------------------------------------------------------------------
//  >>api:compiled   graphs as C, for programs that have no dispatcher (may change)
//----------------------------------------------------------------------------------------------------------------------

/* Options of opd_graph_write_c and opd_program_write_c. */
typedef struct opd_c_options {
    const char *name;            /* name of the files and of the functions in them: up to 40 letters, digits and _;
        NULL: "model" */
    const int *open;             /* for each input, the dim whose size is open (may differ between runs), or -1; NULL:
        all sizes are fixed */
    int64_t least, most;         /* the range of the open size; an exported program may narrow it.  `least` is at least
                                    1 and `most` at least 2.  The arena is planned for the whole range.  If the size of
                                    a call is outside of the range, the C function returns 3. */
    const int *open_2;           /* a second open size, such as the number of tokens, if the first is the batch size;
                                    NULL: none */
    int64_t least_2, most_2;     /* the range of the second open size */
    bool calls;                  /* operators without a form in C are called: NAME.c includes opdispatch.h, and is
                                    linked with a program that contains the implementation of opdispatch.h.  Then no
                                    size can be open */
} opd_c_options;
/* Writes a graph of tensors as C99 into an existing folder.  NAME.c and NAME.h need no other file and allocate
   nothing.  NAME.weights has the graph's constants.  NAME.h explains how to use the code.  `inputs` has an example of
   each input: the C function takes their dtypes, sizes and strides, and ignores the numbers.  Results are contiguous.
   Chains of operators become loops, and rows of a normalisation are read once.  Operators after a product or
   convolution are computed when its result is stored.  A batch norm becomes part of the weights.  Sums have another
   order than in an uncompiled run.  In the mode of same bits (opd_same_bits_set), results have the bits of an
   uncompiled run, if gcc or clang compiles NAME.c and, with options->calls, the thread that runs it is in the mode.
   Without options->calls, the code adds as the library does: products of matrices, convolutions without groups and
   without Winograd's method, pooling by maxima, softmax and losses of rows of float32.  Operators that the code would
   round in another way, such as other sums, are errors.
   With options->open, the size of a batch or sequence (or both) is an argument of the functions, open_size.  Other
   sizes may depend on it only by multiples, squares and products.  If a size depends on it in another way, or if some
   sizes need other code, this fails with an error that names the place.  This also fails for random operators, for
   operators whose result sizes depend on data and, unless options->calls is set, for operators without a form in C.
   After a failure, no file is written.
   A loop (opd_scan, opd_map, opd_while in a trace, prim::Loop, a loop of an exported program) becomes one loop of C,
   whose text does not grow with the number of rounds; so do the loops in its derivatives.  It reads slices and writes
   stacked results in place.  A condition (opd_cond, prim::If) becomes an `if` of C: only the side that is taken is
   computed, draws random numbers and can fail.  Results of conditions and loops are new tensors, even if a function
   returns its argument.  If a loop has only one round, sizes are open, a carried value changes its sizes, or the body
   writes into tensors that it has not made or uses the number of the round otherwise than for slices, the rounds are
   written one after the other, and both sides of a condition are computed.  The gradient of opd_while cannot be
   written, because the number of rounds that it stacks depends on data.
   While this function runs, no other thread may run the graph or call this function.  Returns 0, or -1 with an
   error. */
OPD_NEW int opd_graph_write_c(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, const char *folder,
                              const opd_c_options *options);
/* Writes a graph with open sizes (opd_graph_trace_open) as C99, as opd_graph_write_c does.  The open sizes, at most
   four, are arguments of the functions: open_size, open_size_2 and so on, in the order of opd_graph_size, each divided
   by its multiple_of.  NAME.h has the names, and the ranges as macros.  Each open size must have an upper bound.  A
   range that begins at 0 begins at 1 here.  The sizes of inputs, results and loops must be sums of products of the
   arguments, each with at most four factors and without cubes.  The C function returns 3 if an argument is outside of
   its range.  options->open and open_2 are not read, and options->calls must be false.  Returns 0, or -1 with an
   error. */
OPD_NEW int opd_graph_write_c_open(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, const char *folder,
                                   const opd_c_options *options);
/* Writes an exported program as C99, as opd_graph_write_c does for a graph.  The program's tensors are the weights.  A
   buffer that the program writes is state: it is kept from run to run, in the memory that the caller passes to the
   written function NAME_init.  Inputs that are not tensors are fixed to the values in `inputs`. */
OPD_NEW int opd_program_write_c(const opd_program *program, const opd_value *inputs, int ninputs, const char *folder,
                                const opd_c_options *options);
/* Options of opd_graph_compile and opd_program_compile. */
typedef struct opd_compile_options {
    const char *name;            /* the name in files and messages, as in opd_c_options; NULL: "model" */
    const char *flags;           /* flags of the compiler; NULL: the fastest code for this machine */
    bool frozen;                 /* constants, or the program's tensors, do not change: values that depend only on them
        are computed once.  If one changes, later runs are uncompiled.  Changes that opd_tensor_version does not count,
        such as those through pointers or opd_tensor_data, are not noticed.  Two kinds of constants are not frozen:
        inference tensors, and constants that the graph itself writes, such as a cache or a running mean */
    int kinds;                   /* the largest number of kinds of inputs (see opd_compiled) that are compiled; 0 means
                                    8 */
    const int *open;             /* sizes that may differ within one kind, as in opd_c_options; NULL: none */
    int64_t least, most;
    const int *open_2;
    int64_t least_2, most_2;
    bool background;             /* the C compiler works while the program goes on: runs are uncompiled until it is
        done.  Then one run also loads and times the code.  Without threads, this option does nothing */
} opd_compile_options;
/* A graph or program that is written as C, compiled and loaded while the program runs (torch.compile).  Inputs are of
   one kind if they have the same dtypes, sizes and strides, and the same values of inputs that are not tensors.  Each
   kind is compiled separately, in seconds, by $CC or cc, as opd_compile_and_load does; after that, the result is in the
   cache of opd_compile_and_load.  A long C text is divided into parts, and one compiler for each processor works on
   them.  Layers whose loops are the same share their code.  The first run of each kind is uncompiled, which means that
   the graph itself is run.
   Operators without a form in C, such as operators of the program, are called with copies of their tensors.  The copies
   have the strides of an uncompiled run (OPD_OPTAG_NEEDS_EXACT_STRIDES, the default for operators of the program), or
   are contiguous (OPD_OPTAG_FLEXIBLE_LAYOUT, the default for built-in operators).  If elements of a tensor share memory
   along dims with a stride above 0, exact strides make the run uncompiled.  Random operators are called, too, and draw
   the same numbers as in an uncompiled run.  If a size is open, or a random operator's tensors are not contiguous, the
   run is uncompiled instead.  Loops and conditions become C loops and conditions, as in opd_graph_write_c.  Compiled
   sums add in another order, and kernels that are registered later are not called.
   Runs are uncompiled for gradients, transforms, autocast, other devices and sizes that depend on data.  On a device
   whose backend has a compiler of parts (opd_backend_desc.parts), as CUDA has, this compiler computes parts of the
   graph, and the other operators run uncompiled.  They are also
   uncompiled if written tensors share memory, if results are views of a part of each other, if a run transposes its
   inputs in place (t_) or has side effects (prints), or if there is no compiler.
   Matrix products and convolutions are computed by C loops or by the library's kernels, whichever is faster.  To find
   that out, the first run of a kind also runs the code up to four times with each, for about 0.2 seconds.  These
   runs write copies of the tensors that the graph writes.  Nothing is timed if a run draws random numbers or calls an
   operator of the program.  Large attention is always computed by the library's kernel.  If the code takes at least
   0.2 milliseconds and uncompiled runs are faster, the code is unloaded, and later runs of the kind are uncompiled,
   unless the environment has OPD_COMPILED_ALWAYS=1, or the graph writes its constants.
   Before the code is used, a check finds out whether the C compiler gives right numbers with these flags: some versions
   of gcc vectorise conditions wrongly.  The check is compiled once, in half a second, and stays in the cache.  If it
   fails, there is a warning, and the code is compiled with -fno-tree-vectorize.  If that fails, too, the code is
   compiled with -O2, unless options->flags were given, or not at all.
   If a graph has one to four open sizes with upper bounds (opd_graph_trace_open), and the options name none, one code
   is made for all sizes.  The same options and limits hold as for opd_graph_write_c_open.
   With options->background, the first run of a kind takes little longer than an uncompiled run: a thread of the library
   waits for the C compiler, and opd_compiled_reason says so.  One kind is compiled at a time.  opd_compiled_free waits
   for the compiler; a child process of a fork compiles again.
   The first failure of the compiler gives a warning.  If a size cannot be open, there is a warning, too, and each value
   of the size is a separate kind.  Without a warning, this also happens if uncompiled runs are faster, for the sizes of
   the first run, than code with open sizes.  This is measured again in the first run with each range of sizes: a range
   of a size ends before four times its start.  If uncompiled runs are faster there, sizes of this range are separate
   kinds. */
typedef struct opd_compiled opd_compiled;
/* opd_graph_compile and opd_program_compile make an opd_compiled, which belongs to the caller.  The graph or program
   still belongs to the caller.  It must live as long as the opd_compiled, must not change, and must not be run by other
   functions at the same time.  Between runs, a program's tensors may be replaced (opd_module_set), and its graph
   (opd_program_set_graph).  Tensors that are replaced by tensors with the same dtypes, sizes and strides cost nothing,
   unless they are frozen.  After other changes, the next runs are compiled again, and the old code is freed.  On
   failure the functions return NULL with an error. */
OPD_NEW opd_compiled *opd_graph_compile(const opd_graph *graph, const opd_compile_options *options);
OPD_NEW opd_compiled *opd_program_compile(const opd_program *program, const opd_compile_options *options);
/* Lets `compiler` compute the parts of the graph that it supports (see opd_graph_delegate).  Call it before the first
   run. Then no C code is made, and the other nodes run as they did.  Without this function, the compiler of a device
   (opd_backend_desc.parts) computes parts from the first run with an input on this device on.  Returns the number of
   parts, or -1 and sets an error; then nothing has changed. */
OPD_NEW int opd_compiled_delegate(opd_compiled *compiled, const struct opd_part_compiler *compiler);
/* Runs a compiled graph or program, with inputs and outputs as in opd_graph_run_values or opd_program_run.  Returns the
   number of outputs, or -1 with the error of the uncompiled run.  Any thread may call this, and several at once if
   nothing is written. */
OPD_NEW int opd_compiled_run(opd_compiled *compiled, const opd_value *inputs, int ninputs, opd_value *outputs, int cap);
/* Runs a compiled graph or program on tensors, as an opd_transform_fn: pass the opd_compiled as user.  outputs has
   room for OPD_TRANSFORM_OUTPUTS tensors; if there are more, the call fails.  Of a program, outputs gets the results
   that are tensors, as from opd_program_function. */
OPD_NEW int opd_compiled_function(void *compiled, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* Returns the reason why the last run was uncompiled, or NULL if it was compiled.  Before the first run, the reason is
   that there was no run.  The text is valid until opd_compiled_free. */
OPD_NEW const char *opd_compiled_reason(const opd_compiled *compiled);
OPD_NEW void opd_compiled_free(opd_compiled *compiled);


/* A graph as kernels for a GPU, in the language that CUDA and HIP share.  A compiler for parts of graphs
   (opd_part_compiler) can compile the text while a program runs, as opdispatch_cuda.cu does with NVRTC. */
enum { OPD_GPU_INPUT, OPD_GPU_OUTPUT, OPD_GPU_MEMORY };
/* An argument of a kernel, which is a pointer.  `kind` OPD_GPU_INPUT: to the first element of input number `index`; the
   tensors in opd_gpu_code.constants follow the inputs of the graph.  OPD_GPU_OUTPUT: to the first element of tensor
   number `index` in opd_gpu_code.made.  OPD_GPU_MEMORY: to byte `offset` of the block of opd_gpu_code.memory bytes. */
typedef struct opd_gpu_argument { int32_t kind, index; size_t offset; } opd_gpu_argument;
/* A launch of the kernel `name` with `threads` threads in each block.  It needs no dynamic shared memory.  `blocks` is
   the number of blocks that have work; kernels are right with any number of blocks from 1 on. */
typedef struct opd_gpu_call {
    const char *name;
    int64_t blocks;
    int32_t threads, narguments;
    const opd_gpu_argument *arguments;
} opd_gpu_call;
/* A tensor that a run makes before the launches. */
typedef struct opd_gpu_tensor {
    opd_scalar_type dtype;
    int32_t ndim;
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
} opd_gpu_tensor;
/* A result of the graph.  It is tensor number `of` in opd_gpu_code.made or, if `of` is negative, input number ~of.  If
   `view` is true, it is a view of this tensor, whose first element is `offset` elements behind that of the tensor. */
typedef struct opd_gpu_result {
    int32_t of, ndim;
    bool view;
    int64_t offset, sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
} opd_gpu_result;
typedef struct opd_gpu_code {
    const char *text;                             /* the source of all kernels, which are extern "C" */
    const opd_gpu_call *calls;                    /* the launches, in order, on one stream */
    const opd_gpu_tensor *made;
    const opd_gpu_result *results;                /* the results of the graph */
    opd_tensor *const *constants;                 /* tensors that belong to the graph */
    int32_t ncalls, nmade, nresults, nconstants;
    size_t memory;                                /* bytes for values between kernels; they must begin at a multiple of
                                                     64 bytes, and no other run may use them at the same time */
} opd_gpu_code;
/* Writes a graph as kernels for a GPU, for inputs with the dtypes, sizes and strides of `inputs` [ninputs], which are
   on one device; their elements are not read.  Pointwise operators, views, and sums, products, maxima and minima along
   dims can be written, and so can what consists of them (softmax, norms).  Chains become one kernel if their rows fit.
   Other operators, writes to inputs, and shapes that would leave most of a GPU without work, are errors
   (OPD_ERROR_NO_KERNEL), so that a caller can run the graph as it is.  No other thread may run the graph at the same
   time.  Sums add in another order than the operators do.  Returns a code that belongs to the caller, and points to the
   graph's constants: free it before the graph.  On failure, returns NULL and sets an error. */
OPD_NEW opd_gpu_code *opd_graph_gpu_code(const opd_graph *graph, opd_tensor *const *inputs, int ninputs);
OPD_NEW void opd_gpu_code_free(opd_gpu_code *code);
