//----------------------------------------------------------------------------------------------------------------------
//  >>api:programs   exported programs: what torch.export writes
//----------------------------------------------------------------------------------------------------------------------

/* A program from a .pt2 file (torch.export.save of torch 2.2 and later), in the form with all operators or in the core
   form: its tensors are a module, over the mapped file, and what it does is a graph.  A run is calls of operators: on
   the tape (opd_backward, an optimizer and the module train it), under vmap, autocast, fake mode and the profiler,
   where the module's tensors are.  A condition that differs from example to example under vmap runs both sides.  What
   is written never reaches the file, which nobody should shorten as long as its tensors live. */
typedef struct opd_program opd_program;
/* Loads the program of that name (NULL: "model", or the first there is) from a file, or from memory, which must outlive
   the module's tensors.  NULL with an error that says what is wrong and where.  An operator that is not there is an
   error only when it is reached: opd_program_operator names it before.  Belongs to the caller; the module has owners of
   its own. */
OPD_API opd_program *opd_program_load(const char *path, const char *name);
OPD_API opd_program *opd_program_parse(const void *data, size_t size, const char *name);
OPD_API void opd_program_free(opd_program *program);
/* The tensors under PyTorch's names ("layers.0.weight"): parameters, which require grad where the file says so,
   buffers, and constants, which are not saved.  One tensor under several names where weights are tied.  Borrowed. */
OPD_API opd_module *opd_program_module(const opd_program *program);
OPD_API const char *opd_program_name(const opd_program *program);
/* The names of all programs in the file that it was loaded from; NULL beyond the last. */
OPD_API const char *opd_program_file_name(const opd_program *program, int i);
/* What the user gives and gets, in PyTorch's order when lists and dicts are taken apart: "x", "state.0", "logits". */
OPD_API int opd_program_ninputs(const opd_program *program);
OPD_API int opd_program_noutputs(const opd_program *program);
OPD_API const char *opd_program_input_name(const opd_program *program, int i);
OPD_API const char *opd_program_output_name(const opd_program *program, int i);
OPD_API int opd_program_find_input(const opd_program *program, const char *name);         /* its index; -1: none */
OPD_API int opd_program_find_output(const opd_program *program, const char *name);
/* 1 if an input is a number, text or None that exporting has fixed: *value gets it (NULL: not wanted). */
OPD_API int opd_program_input_constant(const opd_program *program, int i, opd_value *value);
/* Writes what an input is: "float32 [s0=1..64, 3, 224]", "int", or what exporting has fixed: "3"; cut to cap bytes,
   returns the full length.  writes: whether a run may write into the module's tensors. */
OPD_API size_t opd_program_input_type(const opd_program *program, int i, char *buf, size_t cap);
OPD_API bool opd_program_writes(const opd_program *program);
/* Runs it: inputs as above, tensors, ints, floats, bools (or tensors of one) and None; those that are fixed must be the
   same, and may be OPD_DEFAULT or all be left out.  Sizes are checked, those that differ between runs against their
   ranges, and dtypes: another floating one is taken where the module's tensors were cast to it.  Fills outputs (at most
   cap; tensors of the innermost scope) and returns how many there are, or -1.  What the program writes into buffers,
   parameters and inputs is written.  Any thread, several at once where nothing is written.  run_named: inputs in any
   order, by their names. */
OPD_API int opd_program_run(const opd_program *program, const opd_value *inputs, int ninputs, opd_value *outputs,
                            int cap);
OPD_API int opd_program_run_named(const opd_program *program, const char *const *names, const opd_value *inputs,
                                  int ninputs, opd_value *outputs, int cap);
/* Runs a program of tensors as an opd_transform_fn, with the program as user; inputs that are fixed are left out. */
OPD_API int opd_program_function(void *program, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* The graph, borrowed; its inputs are the module's tensors, then the user's.  print: as text, with the graphs of
   conditions and loops behind it; cut to cap bytes, returns the full length. */
OPD_API const opd_graph *opd_program_graph(const opd_program *program);
OPD_API size_t opd_program_print(const opd_program *program, char *buf, size_t cap);
/* The i-th of the operators that it calls: its name, how often, and why it cannot be called (NULL: it can).  NULL
   beyond the last. */
OPD_API const char *opd_program_operator(const opd_program *program, int64_t i, int64_t *count, const char **missing);
/* What to know before training: what exporting in eval mode has fixed, in words.  NULL beyond the last. */
OPD_API const char *opd_program_note(const opd_program *program, int64_t i);
/* Writes a .pt2 file that torch.export.load takes; 0, or -1 with an error.  A loaded program's graph, with its module:
   the program as it was loaded, with whatever the file says of it (sizes that differ between runs, conditions, names,
   extra files), and the tensors as they are now, which must have the dtypes and sizes they had.  A graph that was
   traced: its first inputs are the module's tensors, in its order (module NULL: it has none), the others the user's;
   sizes are fixed to those of the trace; conditions and loops, and values that are no tensors and not constant, are
   errors.  all: several loaded programs in one file, under these names (NULL: those they have).  open: of what was
   traced twice, with inputs of two sizes, further apart than any number that they are divided by (a batch of 7 and of
   12): that size is open in the program, and so is each that is a multiple of it, or it and a constant; whatever else
   differs is an error, and what is the same in both traces is fixed. */
OPD_API int opd_program_save(const opd_graph *graph, const opd_module *module, const char *path);
OPD_API int opd_program_save_open(const opd_graph *graph, const opd_graph *other, const opd_module *module,
                                  const char *path);
OPD_API int opd_program_save_all(opd_program *const *programs, const char *const *names, int count, const char *path);

