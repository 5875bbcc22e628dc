//----------------------------------------------------------------------------------------------------------------------
//  >>api:compiled   graphs as C, for programs that have no dispatcher
//----------------------------------------------------------------------------------------------------------------------

typedef struct opd_c_options {
    const char *name;            /* of the files and of what is in them: up to 40 letters,
        digits and _; NULL: "model" */
    const int *open;             /* for each input the dim whose size is open, -1 none; NULL: all sizes are fixed */
    int64_t least, most;         /* the open size's range, within what a program takes: 1 or more to 2 or more.  The
        arena is planned for all of it, and a run with another size returns 3. */
    const int *open_2;           /* a second open size, as that of tokens is beside a batch's; NULL: none */
    int64_t least_2, most_2;     /* its range */
    bool calls;                  /* operators without a form in C are called: NAME.c includes opdispatch.h, and is
        linked with a program that has its implementation; no size is open then */
} opd_c_options;
/* Writes a graph of tensors as C99 into a folder that is there: NAME.c and NAME.h, which need no other file and
   allocate nothing, and NAME.weights, the graph's constants.  NAME.h says how they are used.  Chains of operators
   become loops, rows of a normalisation are walked once, what follows a product or convolution is computed where its
   result is stored, and a batch norm is part of the weights; sums have another order than in a run.  inputs: an example
   of each, whose dtypes, sizes and strides are those of the C function (its numbers do not matter); results lie row by
   row.
   With options->open a batch's or a sequence's size is an argument of the functions, open_size, or both are.  What
   depends on them otherwise than by multiples, squares and products, or does other work for some sizes, is an error
   that names it.  So are sizes that depend on data, draws and, but for options->calls, operators without a form in C;
   then no file is written.
   Of a condition (cond) on data both sides are computed, and errors of either are errors.
   Nobody may run the graph meanwhile.  0, or -1 with an error.  One thread at a time.  */
OPD_API int opd_graph_write_c(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, const char *folder,
                              const opd_c_options *options);
/* The same of an exported program, whose tensors are the weights.  A buffer that it writes is state, kept from run to
   run in the memory that NAME_init gets.  Inputs that are no tensors are fixed to those of the example.  */
OPD_API int opd_program_write_c(const opd_program *program, const opd_value *inputs, int ninputs, const char *folder,
                                const opd_c_options *options);
typedef struct opd_compile_options {
    const char *name;            /* of files and messages, as in opd_c_options; NULL: "model" */
    const char *flags;           /* of the compiler; NULL: for this machine, as fast as it can */
    bool frozen;                 /* constants, or the program's tensors, stay as they are: what is made of them is made
        once; after one has changed runs are plain */
    int kinds;                   /* of inputs that are compiled; 0: 8 */
    const int *open;             /* sizes that may differ within one kind, as in opd_c_options; NULL: none */
    int64_t least, most;
    const int *open_2;
    int64_t least_2, most_2;
} opd_compile_options;
/* A function like a graph, of C that is made, compiled and loaded while the program runs (torch.compile).  Each kind of
   inputs (dtypes, sizes, strides, values of those that are no tensors) is compiled after its first run, which is a
   plain one, by $CC or cc as opd_load does, in seconds, and found in its cache after that.  Operators without a form in
   C, a program's own among them, are called with copies of their tensors that lie row by row; so is what draws, which
   takes the numbers of a plain run; where a size is open, or tensors lie otherwise, the run is one.  A run is plain, as
   it would be of the graph, where gradients, transforms, autocast, other devices or sizes that depend on data ask for
   it, where tensors that are written share memory, where results are views of a part of each other, where a run turns
   its inputs (t_) or does more than compute (prints), and where there is no compiler: the first time that compiling
   fails is a warning, and where sizes cannot be open: then each size is a kind.  Compiled sums have another order, and
   kernels that are replaced later are not called.
   graph or program belong to the caller, stay unchanged, and nobody else runs them meanwhile.  NULL with an error. */
typedef struct opd_compiled opd_compiled;
OPD_API opd_compiled *opd_graph_compile(const opd_graph *graph, const opd_compile_options *options);
OPD_API opd_compiled *opd_program_compile(const opd_program *program, const opd_compile_options *options);
/* Runs it, with inputs and outputs as opd_graph_run_values or opd_program_run.  Returns how many outputs there are, or
   -1 with the error of the plain run.  Any thread, several at once where nothing is written. */
OPD_API int opd_compiled_run(opd_compiled *compiled, const opd_value *inputs, int ninputs, opd_value *outputs, int cap);
/* The same of tensors, as an opd_transform_fn, with what was compiled as user. */
OPD_API int opd_compiled_function(void *compiled, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* Why the last run was a plain one, in words that stay until opd_compiled_free; NULL: it was compiled. */
OPD_API const char *opd_compiled_reason(const opd_compiled *compiled);
OPD_API void opd_compiled_free(opd_compiled *compiled);

