//----------------------------------------------------------------------------------------------------------------------
//  >>api:graphs     recording operators into a graph, printing and running it
//----------------------------------------------------------------------------------------------------------------------

/* A list of operators in the order in which they were called, over named values.  Belongs to whoever made it. */
typedef struct opd_graph opd_graph;
typedef struct opd_trace_options {
    const char *const *names; int nnames;   /* of the inputs: "x"; NULL: numbers */
    bool allow_constants;                   /* reading the data of a traced tensor warns and makes a constant of it */
    bool list_output;                       /* several outputs are a list, not a tuple */
    bool check;                             /* trace a second time, and compare graphs and what they give with fn */
    double tolerance;                       /* of that comparison, absolute and relative; 0: 1e-5 */
    bool locations;                         /* where each call was made, "# FILE:LINE" behind it: slow; needs debug
                                               information (-g) and the program addr2line */
    bool parts;                             /* of a composite operator that the tape sees record those it calls: for
                                               derivatives that fn takes by the tape */
} opd_trace_options;
/* torch.jit.trace: calls fn once with inputs and records each operator that it calls at the Tracer key: operators
   inside kernels are not recorded, those of vmap as its rules call them, of a composite operator inside a transform
   that differentiates those it calls; derivatives and tangents are recorded too (by the tape: with options->parts, else
   refused where they read what a composite operator made).  Tensors from outside become constants of the graph; one
   that requires grad is refused, it must be an input.  There are no silent constants: asking for the data or the value
   of a traced tensor outside of a kernel is an error, as are operators that give C values of one.  Sizes are C numbers,
   and what is made of them is fixed (a text may ask by aten::size).  Names of inputs are made different (a, a.1).
   NULL with an error; does not nest. */
OPD_API opd_graph *opd_graph_trace(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                             const opd_trace_options *options);
OPD_API void opd_graph_free(opd_graph *graph);
/* Runs it: inputs as traced, of any sizes that its operators take; fills outputs (at most cap; of the innermost scope)
   and returns how many there are, or -1.  Values go after their last use.  Where a run plans the memory of the next one
   (on the CPU; one run of a graph at a time; the first 4,096 values over 256 bytes), one with the same sizes asks the
   system for no memory, and its values take at most a twentieth more than the largest sum alive.  Calls pass through
   the dispatcher as those of fn did: the results are on the tape, and graphs run inside vmap, autocast and other
   traces.  Any thread, several at once. */
OPD_API int opd_graph_run(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs,
                          int cap);
/* The same for inputs and outputs of any kind, as graphs with blocks have them (see >>api:cells): inputs are converted
   to the types of the graph's as PyTorch does it (an int to a float, a list to one of another kind), cells of the right
   type are taken as they are.  Outputs belong to the innermost scope. */
OPD_API int opd_graph_run_values(const opd_graph *graph, const opd_value *inputs, int ninputs, opd_value *outputs,
                                 int cap);
/* Runs a graph as an opd_transform_fn, with the graph as user. */
OPD_API int opd_graph_function(void *graph, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* TorchScript's text: cut to cap bytes with its zero; returns the full length. */
OPD_API size_t opd_graph_print(const opd_graph *graph, char *buf, size_t cap);
OPD_API int opd_graph_ninputs(const opd_graph *graph);
OPD_API int opd_graph_noutputs(const opd_graph *graph);
/* The other way round: a graph of that text, operators by the first overload that takes the values (or the one that the
   name says: aten::add.Tensor), arguments left out by their defaults, tensors of at most ten elements.  TorchScript's
   texts have blocks (prim::If, prim::Loop), values of any type and builtin functions; what is not known there fails
   when it is reached.  NULL with an error that says the line. */
OPD_API opd_graph *opd_graph_parse(const char *text);
/* A file with the graph, its constants, overloads and source locations, and back: NULL with an error for one that is
   cut, damaged, of another version, or that calls an operator which is not there: then it says where that one was
   registered when the graph was saved, and in which plug-in.  from_bytes: a file in memory, which is not kept.
   Graphs belong to the caller; a file is written whole or not at all.  save: 0, or -1 with an error.  Any thread. */
OPD_API int opd_graph_save(const opd_graph *graph, const char *path);
OPD_API opd_graph *opd_graph_load(const char *path);
OPD_API opd_graph *opd_graph_from_bytes(const void *data, size_t size);
/* How many nodes call an operator of that qualified name ("aten::mul", any overload); NULL: all nodes. */
OPD_API int opd_graph_count(const opd_graph *graph, const char *name);
/* A graph by hand, as by torch._C.Graph.  Each step is checked against the schemas, and changes nothing when it fails
   (NULL or -1 with an error).  It gives a graph like a traced, parsed or loaded one; those can be changed by the same
   functions.  Values belong to their graph.  One thread at a time, and while nobody runs the graph.
       opd_graph *g = opd_graph_new();
       opd_graph_value *in[] = {opd_graph_input(g, "x", NULL), opd_graph_constant(g, opd_value_int(2))}, *y;
       opd_graph_call(g, "aten::mul", in, 2, &y, 1);
       opd_graph_output(g, &y, 1, false); */
typedef struct opd_graph_value opd_graph_value;
OPD_API opd_graph *opd_graph_new(void);
/* Adds an input, a tensor, behind the others.  name: NULL for a number.  type: as it is printed, "Float(2, strides=[1],
   device=cpu)", or NULL: "Tensor".  NULL with an error. */
OPD_API opd_graph_value *opd_graph_input(opd_graph *graph, const char *name, const char *type);
/* prim::Constant; for a list one for each element, and prim::ListConstruct.  Keeps a copy; of a tensor, which must not
   require grad, a reference. */
OPD_API opd_graph_value *opd_graph_constant(opd_graph *graph, opd_value value);
/* prim::ListConstruct; element: what it is a list of, "Tensor", "Tensor?", "int", "float", "bool" or "Scalar". */
OPD_API opd_graph_value *opd_graph_list(opd_graph *graph, const char *element, opd_graph_value *const *values,
                                        int count);
/* prim::ListUnpack of a list of `count` tensors: 0, or -1. */
OPD_API int opd_graph_unpack(opd_graph *graph, opd_graph_value *list, opd_graph_value **parts, int count);
/* A call.  Arguments by position, NULL or left out for the schema's default; constant integers become floats where
   those are wanted.  name: with its overload ("aten::add.Tensor"), or without: the first one that takes the arguments.
   Fills results (at most cap) and returns how many there are, or -1.  _op: of an operator that one has. */
OPD_API int opd_graph_call(opd_graph *graph, const char *name, opd_graph_value *const *args, int nargs,
                           opd_graph_value **results, int cap);
OPD_API int opd_graph_call_op(opd_graph *graph, opd_op *op, opd_graph_value *const *args, int nargs,
                              opd_graph_value **results, int cap);
/* Gives a value a name ("" takes it away; who has it is renamed to name.1), and a tensor a type as it is printed; NULL:
   stays.  0, or -1. */
OPD_API int opd_graph_describe(opd_graph *graph, opd_graph_value *value, const char *name, const char *type);
/* The value that is printed as %name: "x", "3".  NULL, without an error: there is none. */
OPD_API opd_graph_value *opd_graph_find(opd_graph *graph, const char *name);
/* Puts what is made from now on before the node that makes the value; NULL: behind all others again.  0, or -1. */
OPD_API int opd_graph_insert_before(opd_graph *graph, opd_graph_value *value);
/* Sets what the graph returns, in place of what it did: a tensor, several as a tuple, or a list.  0, or -1. */
OPD_API int opd_graph_output(opd_graph *graph, opd_graph_value *const *values, int count, bool list);
/* Takes away the node that makes the value, or the input.  An error when it, or another of its results, is used. */
OPD_API int opd_graph_erase(opd_graph *graph, opd_graph_value *value);
/* Passes; each returns how many nodes it took away, or -1.  dce: what no output needs and nothing sees (writes, and
   operators that may do anything, stay; a draw that nothing uses goes, and the draws after it are other ones).  cse:
   nodes that compute again what one before them has.  fold: operators of constants become constants. */
OPD_API int opd_graph_dce(opd_graph *graph);
OPD_API int opd_graph_cse(opd_graph *graph);
OPD_API int opd_graph_fold(opd_graph *graph);

