//----------------------------------------------------------------------------------------------------------------------
//  >>api:programs   exported programs: files of torch.export (may change)
//----------------------------------------------------------------------------------------------------------------------

/* A program from a .pt2 file (torch.export.save of torch 2.2 and later), with all operators or with core operators
   only.  The tensors of the program are a module over the mapped file, and the code is a graph.  A run calls operators
   on the device of the module's tensors, so it works with autograd (opd_backward, an optimizer and the module train the
   program), vmap, autocast, fake mode and the profiler.  Under vmap, if a condition differs between examples, both
   branches run.  Writes to the tensors never reach the file.  Do not shorten the file while the program's tensors
   live. */
typedef struct opd_program opd_program;
/* opd_program_load reads the program of that name from a file.  opd_program_parse reads it from memory, which must
   outlive the module's tensors.  If name is NULL, the program "model" is read or, if there is none, the first one.  The
   caller frees the program; its module lives longer if opd_module_keep has added an owner.  On failure returns NULL and
   sets an error with the cause and the place.  If an operator is not registered, a run that reaches it fails;
   opd_program_operator lists such operators. */
OPD_NEW opd_program *opd_program_load(const char *path, const char *name);
OPD_NEW opd_program *opd_program_parse(const void *data, size_t size, const char *name);
OPD_NEW void opd_program_free(opd_program *program);
/* Returns the program's tensors under PyTorch's names ("layers.0.weight"), borrowed: parameters (which require grad if
   the file says so), buffers, and constants (which opd_module_save does not write).  Tied weights are one tensor under
   several names.  opd_program_name: Returns the name of the program. */
OPD_NEW opd_module *opd_program_module(const opd_program *program);
OPD_NEW const char *opd_program_name(const opd_program *program);
/* Returns the name of program i in the file that the program was loaded from.  Returns NULL beyond the last. */
OPD_NEW const char *opd_program_file_name(const opd_program *program, int i);
/* The user's inputs and outputs, in PyTorch's order after lists and dicts are flattened: "x", "state.0", "logits".  The
   functions return the numbers of inputs and outputs, their names, and the index of the input or output with a name.
   The outputs of a joint graph, which also computes gradients, are "loss", "layers.0.weight.grad", "x.grad". */
OPD_NEW int opd_program_ninputs(const opd_program *program);
OPD_NEW int opd_program_noutputs(const opd_program *program);
OPD_NEW const char *opd_program_input_name(const opd_program *program, int i);
OPD_NEW const char *opd_program_output_name(const opd_program *program, int i);
OPD_NEW int opd_program_find_input(const opd_program *program, const char *name);         /* -1 if there is none */
OPD_NEW int opd_program_find_output(const opd_program *program, const char *name);        /* -1 if there is none */
/* Returns 1 if input i is a number, text or None that exporting has fixed, and writes this value to *value, unless
   value is NULL.  Returns 0 for other inputs. */
OPD_NEW int opd_program_input_constant(const opd_program *program, int i, opd_value *value);
/* Writes the type of input i into buf: "float32 [s0=1..64, 3, 224]", "int", or the fixed value, "3".  The text is cut
   to `cap` bytes.  Returns the full length.
   opd_program_writes: Returns true if a run may write into the module's tensors. */
OPD_NEW size_t opd_program_input_type(const opd_program *program, int i, char *buf, size_t cap);
OPD_NEW bool opd_program_writes(const opd_program *program);
/* Runs a program.  inputs are tensors, ints, floats, bools (or tensors of one element) and None, in the order of the
   input names.  For a fixed input, pass the fixed value or OPD_DEFAULT; or leave out all fixed inputs.  Sizes and
   dtypes are checked; dynamic sizes must be in their ranges.  If the module's tensors were cast to another floating
   dtype, inputs of that dtype are accepted.  Writes at most `cap` outputs (tensors of the innermost scope), and returns
   the number of outputs, or -1 and sets an error.
   If the program writes into buffers, parameters or inputs, those change.  Any thread may run a program, and several
   threads at once if nothing is written.  In opd_graph_trace, conditions and loops (torch.cond, while_loop, scan, map)
   are recorded as opd_cond and the others are.  A loop that carries numbers is recorded round by round; this fails if
   its condition is a tensor that depends on the inputs.
   opd_program_run_named: Takes the inputs in any order, by their names. */
OPD_NEW int opd_program_run(const opd_program *program, const opd_value *inputs, int ninputs, opd_value *outputs,
                            int cap);
OPD_NEW int opd_program_run_named(const opd_program *program, const char *const *names, const opd_value *inputs,
                                  int ninputs, opd_value *outputs, int cap);
/* Runs a program whose inputs are tensors as an opd_transform_fn.  Pass the program as user.  Fixed inputs are left
   out.  outputs gets the results that are tensors, and has room for OPD_TRANSFORM_OUTPUTS; if the program has more
   outputs, the call fails. */
OPD_NEW int opd_program_function(void *program, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* Returns the program's graph, borrowed.  The graph's inputs are the module's tensors, then the user's inputs: input i
   (opd_graph_input_at) is the tensor i of the module (opd_module_at), if the module has so many.  If the program has
   dynamic sizes, opd_graph_nsizes and opd_graph_size read their names and ranges from the graph, and copies of the
   graph check them.
   opd_program_print: Writes the graph as text into buf, followed by the graphs of conditions and loops.  The text is
   cut to cap bytes.  Returns the full length. */
OPD_NEW const opd_graph *opd_program_graph(const opd_program *program);
OPD_NEW size_t opd_program_print(const opd_program *program, char *buf, size_t cap);
/* Returns a copy of the program's graph, as opd_graph_copy does, in which conditions and loops (torch.cond, while_loop,
   scan, map) are nodes with blocks, as opd_cond and the others are recorded, so that passes, partitions and the
   functions that read graphs reach their nodes.  Calls that only run a graph (checkpoints, hints, strict_mode,
   invoke_subgraph) become the nodes of this graph.  These calls stay as they are: associative_scan, torch.vmap, regions
   that set grad mode or autocast, and a loop whose condition has a condition or loop.  The caller owns the copy, and
   may give it back (opd_program_set_graph).  Different from the program, a run under opd_vmap fails if a condition
   differs between the examples.  Returns NULL and sets an error on failure. */
OPD_NEW opd_graph *opd_program_open_graph(const opd_program *program);
/* Replaces the program's graph by a changed copy of it, which opd_graph_copy or opd_program_open_graph has made and
   which must have as many inputs and outputs.  The program owns `graph` from then on.  Runs, opd_program_compile and
   opd_program_write_c use it; opd_program_save records it anew.  No other thread may use the program meanwhile.
   Returns 0, or -1 and sets an error. */
OPD_NEW int opd_program_set_graph(opd_program *program, opd_graph *graph);
/* Quantises the weights of a program, as opd_quantize_graph does for a graph.  The program runs the new graph from then
   on, and its module has the quantised tensors; opd_program_save writes it for PyTorch.  The batches have the inputs of
   opd_program_run.  A program that writes into its tensors is not run with batches.  If the program was compiled,
   compile it again.  Returns the number of weights that were quantised, or -1 and sets an error; then the program stays
   as it was. */
OPD_NEW int opd_quantize_program(opd_program *program, const char *how, const opd_quantize_options *options);
/* Returns the name of operator i that the program calls, or NULL beyond the last.  Writes the number of its calls to
   *count.  Writes the reason why the operator cannot be called to *missing; NULL if it can be called. */
OPD_NEW const char *opd_program_operator(const opd_program *program, int64_t i, int64_t *count, const char **missing);
/* Returns note i about training the program: the text names a part that was fixed because the program was exported in
   eval mode.  Returns NULL beyond the last note. */
OPD_NEW const char *opd_program_note(const opd_program *program, int64_t i);
/* These functions write a .pt2 file for torch.export.load.  They return 0, or -1 and set an error.
   opd_program_save, if `graph` and `module` belong to a loaded program: Saves the program with everything that its
   file contained (dynamic sizes, conditions, names, extra files), and the current tensors, whose dtypes and sizes must
   not have changed.  If the program's graph was replaced (opd_program_set_graph, opd_quantize_program), it is recorded
   with inputs of zeros and saved like a traced graph, with the same names of inputs and the same dynamic sizes, but
   without inputs that are fixed.  Fails if the program writes into tensors, or has inputs or outputs that are not
   tensors.
   opd_program_save, if `graph` was traced: The first inputs of the graph must be the tensors of `module`, in this order
   (none if module is NULL).  The other inputs of the graph become the inputs of the program.  Sizes are fixed to the
   sizes of the trace; but those that opd_graph_trace_open has left open are dynamic sizes, with the same names and
   ranges, also in PyTorch.  A size T that is a multiple of 4 is 4*T__by_4 there.  Sizes that depend on data are u0, u1,
   ..., as PyTorch writes them.  Conditions and loops (opd_cond, opd_while, opd_scan and opd_map, and their derivatives
   in the trace) become PyTorch's operators cond, while_loop, scan and map_impl.  Fails for conditions and loops in a
   graph with open sizes, for the derivative of opd_while, because the sizes of what it keeps are not known, and for
   values that are neither tensors nor constants; the error names the node and its place.
   opd_program_save_open: Saves a function that was traced twice, as graph and other, with other sizes of its inputs.
   The sizes of inputs that differ become the dynamic sizes of the program, at most 8.  Each must be at least 2 in both
   traces, and must differ by at least 2 (for example, batches of 7 and of 12); if the function divides it by a number,
   by more than this number: otherwise a quotient may be equal in both traces, and would be fixed.  Sizes that vary
   independently must differ by different amounts (lengths of 5 and 16 beside these batches), because a size that is a
   multiple of another, or another plus a constant, stays so in the program.  Other sizes may be a dynamic size plus a
   constant, or a multiple of one, or of the product or the sum of two.  Sizes that are equal in both traces are fixed.
   Saving fails if there is any other difference, if the sizes of the traces allow two such forms, or if there are
   conditions or loops.
   opd_program_save_all: Saves several loaded programs in one file, under names (NULL: their own names). */
OPD_NEW int opd_program_save(const opd_graph *graph, const opd_module *module, const char *path);
OPD_NEW int opd_program_save_open(const opd_graph *graph, const opd_graph *other, const opd_module *module,
                                  const char *path);
OPD_NEW int opd_program_save_all(opd_program *const *programs, const char *const *names, int count, const char *path);

