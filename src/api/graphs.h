//----------------------------------------------------------------------------------------------------------------------
//  >>api:graphs     recording operators into a graph, printing and running it (may change)
//----------------------------------------------------------------------------------------------------------------------

/* A graph: a list of operator calls, in the order in which they were made.  Their arguments and results are named
   values.  The code that created a graph owns it and frees it with opd_graph_free. */
typedef struct opd_graph opd_graph;
typedef struct opd_trace_options {
    const char *const *names; int nnames;   /* names of the inputs, such as "x"; NULL: numbers */
    bool allow_constants;                   /* reading the data of a traced tensor gives a warning and records a
                                               constant, instead of failing */
    bool list_output;                       /* return several outputs as a list, not as a tuple */
    bool check;                             /* trace a second time and compare the two graphs, and compare results of
                                               the graph and of fn */
    double tolerance;                       /* absolute and relative tolerance for the results; 0 means 1e-5 */
    bool locations;                         /* add "# FILE:LINE" of each call: slow; needs debug information (-g)
                                               and the program addr2line */
    bool parts;                             /* record the operators that composite operators call, instead of
                                               composite operators themselves; needed if fn calls backward */
} opd_trace_options;
/* Calls fn once with inputs and records the operators that it calls into a new graph (torch.jit.trace).
   Recorded: The operators that fn calls, and the operators that compute derivatives and tangents.  Operators that
   kernels call are not recorded.  Under vmap, the operators that batching rules call are recorded.  A composite
   operator inside a transform that differentiates is recorded as the operators that it calls.
   Backward: Set options->parts if fn calls backward.  Otherwise tracing fails if backward reads a value that a
   composite operator computed.
   Constants: Tensors that are not inputs and were made before the trace become constants of the graph.  If such a
   tensor requires grad, tracing fails: make it an input.  Reading the data or the value of a traced tensor outside of a
   kernel fails with an error.  Operators that return a C number computed from a traced tensor fail, too.  Sizes are C
   numbers, so values computed from sizes are constants in the graph. (A graph made by opd_graph_parse may use
   aten::size.)
   Other arguments: A generator becomes a constant that refers to it, so runs draw from the same generator; a graph that
   is read from a file has a copy of it.  Another object, or a dict that contains a traced tensor, fails.
   Names: If two input names are equal, the second is changed (a, a.1).
   On failure returns NULL and sets an error.  A trace inside a trace fails. */
OPD_NEW opd_graph *opd_graph_trace(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                             const opd_trace_options *options);
/* Records fn as a graph for many sizes of the inputs (torch.export with dynamic_shapes).
   sizes: For each input, its sizes as a text such as "B, T, 64" or "B, 2*T + 1, 64"; "_" means the size that the input
   has.  A name is an open size: it may differ from run to run.  Inputs whose text is NULL have only the sizes that they
   have now.
   ranges: Ranges of the names, such as "2 <= B <= 64, T <= 1024, T % 4 == 0", or NULL.  Without a lower bound, a name
   is at least 2, as in PyTorch, because programs often treat 0 and 1 in another way; say 0 <= B or 1 <= B to include
   them.
   fn is called with the inputs, and then many times with other sizes: on fakes (opd_fake_begin), or on zeros if an
   operator has no fake kernel.  The calls must record the same operators.  Numbers that differ become expressions of
   the names: sums, products, and quotients that are rounded downward; floats may also be such a number, its square
   root, or a small number divided by one of them.  The nodes of the graph compute these numbers from the sizes of its
   inputs, by aten::sym_size and the operators of integers.
   If fn fails for some sizes within a range that you did not give, the range becomes smaller, or the size must be a
   multiple of a number; opd_graph_size has the reason.  Sizes that depend on data have names of their own, u0, u1, ...;
   fn may not compute numbers for operators from them, and the error names the operator.
   Fails, with the place in fn if the program has debug information, if fn calls other operators for other sizes, or
   reads numbers that are no such expressions.  fn must not decide by sizes: a decision that is different only for sizes
   between those which are tried is not noticed.  Tried are the ends of the ranges, and sizes around powers of two up to
   4096, and 65536.
   options: as in opd_graph_trace.  A trace inside a trace or a transform fails.  On failure returns NULL and sets an
   error. */
OPD_NEW opd_graph *opd_graph_trace_open(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                                        const char *const *sizes, const char *ranges,
                                        const opd_trace_options *options);
/* Frees a graph.  If the graph is running, it is freed when its runs have ended: so a kernel or a hook may free the
   graph that runs it.  This is also so for scripts, exported programs, compiled graphs, models of AOTInductor,
   optimizers, gradient scalers and captures. */
OPD_NEW void opd_graph_free(opd_graph *graph);
/* Runs a graph.  inputs: as many tensors as were traced, of any sizes that the graph's operators accept.  Writes at
   most `cap` outputs, which belong to the innermost scope.  Returns the number of outputs, or -1 and sets an error.
   Values are freed after their last use.
   Calls pass through the dispatcher like the calls of fn.  The results are therefore part of the autograd graph, and
   graphs run inside vmap, autocast and other traces.  Any thread may run a graph, even while other threads run it.
   Each run plans the CPU memory of the next run, for the first 4,096 values over 256 bytes.  If several runs of a graph
   go on at the same time, only one of them uses the plan.  A planned run with the same sizes asks the system for no
   memory.  Its values take at most 5% more than the largest sum of bytes that are alive at the same time. */
OPD_NEW int opd_graph_run(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs,
                          int cap);
/* Runs a graph with inputs and outputs of any kind, as graphs with blocks have them (see >>api:cells).  Inputs are
   converted to the types of the graph's inputs, as in PyTorch: an int to a float, a list to a list of another kind.  A
   cell of the right type is not copied.  Writes at most `cap` outputs, which belong to the innermost scope.  Returns
   the number of outputs, or -1 and sets an error. */
OPD_NEW int opd_graph_run_values(const opd_graph *graph, const opd_value *inputs, int ninputs, opd_value *outputs,
                                 int cap);
/* Runs a graph as an opd_transform_fn.  Pass the graph as user.  outputs has room for OPD_TRANSFORM_OUTPUTS tensors;
   if the graph has more, the call fails. */
OPD_NEW int opd_graph_function(void *graph, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* Writes the graph as TorchScript's text into buf, cut to `cap` bytes including the final zero.  Returns the full
   length. */
OPD_NEW size_t opd_graph_print(const opd_graph *graph, char *buf, size_t cap);
/* Return the numbers of inputs and of outputs of a graph. */
OPD_NEW int opd_graph_ninputs(const opd_graph *graph);
OPD_NEW int opd_graph_noutputs(const opd_graph *graph);
/* Creates a graph from a text in TorchScript's form, the reverse of opd_graph_print.  If an operator's name has no
   overload, as in aten::add, the first overload that accepts the values is called.  Arguments that the text leaves out
   get their defaults.  Constant tensors in the text have at most ten elements.  The text may contain blocks (prim::If,
   prim::Loop), values of any type and builtin functions.  An unknown builtin function fails when a run reaches it.  On
   failure returns NULL and sets an error that names the line. */
OPD_NEW opd_graph *opd_graph_parse(const char *text);
/* These functions write a graph to a file, with its constants, overloads and source locations, and read it back.  Any
   thread may call these functions.
   opd_graph_save: Writes the file completely or not at all.  Returns 0, or -1 and sets an error.
   opd_graph_load: Reads a file.  The caller owns the graph.  Returns NULL and sets an error if the file is truncated,
   damaged, of another version, or calls an operator that is not registered.  The error then says in which source file,
   and in which plug-in, the operator was registered when the graph was saved.
   opd_graph_from_bytes: Reads the contents of such a file from memory, which may be freed afterwards. */
OPD_NEW int opd_graph_save(const opd_graph *graph, const char *path);
OPD_NEW opd_graph *opd_graph_load(const char *path);
OPD_NEW opd_graph *opd_graph_from_bytes(const void *data, size_t size);
/* These functions write a graph to a text that people can read and edit, and read it back as an equal graph
   (opd_graph_equal).  Any thread may call these functions.
   opd_graph_save_text: Writes the text to the file `path`: the text of opd_graph_print, with the overloads of
   operators.  A constant tensor that has more than ten elements or more than one dim, or elements whose text would not
   be exact, is written as $NAME, and its data to the file `path` with ".safetensors" appended, under this name.
   (Without such constants, this file is neither written nor removed.) Each file is written completely or not at all.
   Returns 0, or -1 and sets an error.
   opd_graph_load_text: Reads such a text.  Opens the file beside it if the text names a constant of it; constants are
   views of the mapped file.  If a constant has a type with sizes in the text, the tensor must have this dtype and
   these sizes.  The caller owns the graph.  On failure returns NULL and sets an error that names the line and the
   file. */
OPD_NEW int opd_graph_save_text(const opd_graph *graph, const char *path);
OPD_NEW opd_graph *opd_graph_load_text(const char *path);
/* Returns the number of nodes that call an operator with that qualified name ("aten::mul", any overload).  If name is
   NULL, returns the number of all nodes. */
OPD_NEW int opd_graph_count(const opd_graph *graph, const char *name);
/* Creates an empty graph, to be built step by step as with torch._C.Graph.  The functions below add inputs and nodes to
   the graph, and also change traced, parsed and loaded graphs.  Each call is checked against the schemas.  A call that
   fails returns NULL or -1, sets an error and changes nothing.  Values belong to their graph.  Only one thread at a
   time may change a graph, and only while the graph is not running.
       opd_graph *g = opd_graph_new();
       opd_graph_value *in[] = {opd_graph_input(g, "x", NULL), opd_graph_constant(g, opd_value_int(2))}, *y;
       opd_graph_call(g, "aten::mul", in, 2, &y, 1);
       opd_graph_output(g, &y, 1, false); */
typedef struct opd_graph_value opd_graph_value;
OPD_NEW opd_graph *opd_graph_new(void);
/* Adds a tensor input after the other inputs.  name: if NULL, the input gets a number as its name.  type: a type as
   opd_graph_print prints it, such as "Float(2, strides=[1], device=cpu)"; NULL means "Tensor".  Returns the input's
   value, or NULL and sets an error. */
OPD_NEW opd_graph_value *opd_graph_input(opd_graph *graph, const char *name, const char *type);
/* Adds a constant (prim::Constant) and returns its value.  A list is added as a constant for each element, and a
   prim::ListConstruct of these constants.  The graph copies value.  If value is a tensor, it must not require grad, and
   the graph holds a reference to it. */
OPD_NEW opd_graph_value *opd_graph_constant(opd_graph *graph, opd_value value);
/* Adds a list of `count` values (prim::ListConstruct). element: the type of the elements, "Tensor", "Tensor?", "int",
   "float", "bool" or "Scalar".  Returns the list's value. */
OPD_NEW opd_graph_value *opd_graph_list(opd_graph *graph, const char *element, opd_graph_value *const *values,
                                        int count);
/* Adds a node that splits a list of `count` tensors into its elements (prim::ListUnpack), and writes their values to
   `parts`.  Returns 0, or -1 and sets an error. */
OPD_NEW int opd_graph_unpack(opd_graph *graph, opd_graph_value *list, opd_graph_value **parts, int count);
/* Adds a call of an operator.  args are in the order of the schema.  A NULL element, or a trailing argument that is
   left out, takes the schema's default.  Constant integers become floats if the schema expects floats.  name:
   "aten::add.Tensor" names an overload; "aten::add" means the first overload that accepts the arguments.  Writes at
   most `cap` results and returns the number of results, or -1 and sets an error.
   opd_graph_call_op: Adds a call of op, without looking up a name. */
OPD_NEW int opd_graph_call(opd_graph *graph, const char *name, opd_graph_value *const *args, int nargs,
                           opd_graph_value **results, int cap);
OPD_NEW int opd_graph_call_op(opd_graph *graph, opd_op *op, opd_graph_value *const *args, int nargs,
                              opd_graph_value **results, int cap);
/* Sets the name of a value and, if the value is a tensor, its type (see opd_graph_input).  If name or type is NULL, the
   current one stays.  The name "" removes the name.  If another value has the name already, that value is renamed to
   name.1.  Returns 0, or -1 and sets an error. */
OPD_NEW int opd_graph_describe(opd_graph *graph, opd_graph_value *value, const char *name, const char *type);
/* Returns the value that is printed as %name, such as "x" or "3".  Returns NULL, without an error, if there is none. */
OPD_NEW opd_graph_value *opd_graph_find(opd_graph *graph, const char *name);
/* opd_graph_insert_before makes the functions above add nodes before the node that computes value, and
   opd_graph_insert_after directly after it.  For an input of the graph or of a block, they add nodes before all nodes
   of the graph or block.  If value is NULL, nodes are added at the end of the graph again.  Both return 0, or -1 and
   set an error. */
OPD_NEW int opd_graph_insert_before(opd_graph *graph, opd_graph_value *value);
OPD_NEW int opd_graph_insert_after(opd_graph *graph, opd_graph_value *value);
/* Replaces the outputs of the graph: several tensors as a tuple, or (if list is true) as a list; or one value, also of
   another type, but no list or tuple that a node makes.  Returns 0, or -1 and sets an error. */
OPD_NEW int opd_graph_output(opd_graph *graph, opd_graph_value *const *values, int count, bool list);
/* Removes the node that computes value or, if value is an input, this input.  Fails if value, or another result of the
   node, is used.  Returns 0, or -1 and sets an error. */
OPD_NEW int opd_graph_erase(opd_graph *graph, opd_graph_value *value);
/* Passes that simplify a graph.  Each returns the number of nodes that it removed, or -1 and sets an error.
   opd_graph_dce: Removes nodes that no output needs and that have no side effects.  Operators that write, or whose
   effects are unknown, stay.  Unused random operators stay (as in torch.fx), so that later random operators draw the
   same numbers as in the function.  opd_graph_trace, which calls this pass, keeps them, too.
   opd_graph_cse: Removes nodes that compute the same value as an earlier node.
   opd_graph_fold: Replaces operators whose arguments are all constants by constants. */
OPD_NEW int opd_graph_dce(opd_graph *graph);
OPD_NEW int opd_graph_cse(opd_graph *graph);
OPD_NEW int opd_graph_fold(opd_graph *graph);
/* Folds batch norms into the layers before them (torch.fx.experimental.optimization.fuse, torch.jit.freeze): the layer
   gets a new weight and a new bias,
       weight' = weight * scale,  bias' = (bias - mean) * scale + shift,  scale = gamma / sqrt(var + eps),
   which are computed in double and rounded once.  gamma and shift are the weight and bias of the batch norm.
   Layers: conv1d to conv3d, convolution, conv_transpose1d to conv_transpose3d, and linear.  Batch norms: batch_norm and
   native_batch_norm with training=False, _native_batch_norm_legit_no_training and _batch_norm_no_update.
   A batch norm remains if it is in training mode; if a weight, bias, mean or variance of either is an input of the
   graph, complex, of another dtype than the layer's weight (unless this is a 16-bit float, and the batch norm's are
   float32), or used by other operators; if the result of the layer has another use; if the graph does not know how many
   dims this result has (traced graphs do), or it has no batch dim; and if the new weight or bias would not be finite.
   The constants must not change later.  Returns the number of batch norms folded, or -1 and sets an error. */
OPD_NEW int opd_graph_fold_batch_norms(opd_graph *graph);
/* Replaces layers of quantised models, as PyTorch and torchao export them, by operators that compute the same without
   weights as floats.  A layer is linear, mm, addmm or conv2d of a weight of 8-bit codes that are converted to float32
   (dequantize_per_channel, dequantize_per_tensor, dequantize_affine, ...), and of an input of floats or of such codes.
   Codes times codes is computed in integers.  The rounding of float32 differs; a later quantisation may then choose the
   next code at a tie.  Such a layer also adds other codes, limits its result (relu, hardtanh, clamp, in place, too) and
   quantises it, if these operators follow it and quantize_per_tensor has numbers; max_pool2d, flatten and other views
   between layers then move codes, so that no floats are made between layers.  oneDNN's layers read weights that the
   graph packs (onednn::qlinear_prepack, qconv_prepack) without a copy; each such packing counts as a layer.  If a
   gradient or a transform needs it, the new operators call the replaced ones.  Runs of loaded programs do this by
   themselves: use it for graphs of your own.  The tensors that are given for two inputs of the graph must not share
   memory if the graph writes one of them.  Returns the number of layers (0 if the operators were left out of this
   build), or -1 and sets an error. */
OPD_NEW int opd_graph_fuse_quantized(opd_graph *graph);

