//----------------------------------------------------------------------------------------------------------------------
//  >>api:graph_nodes reading, changing and comparing graphs (may change)
//----------------------------------------------------------------------------------------------------------------------

/* A node of a graph computes values from other values: it calls an operator or a function, or is a constant, a list or
   tuple, a condition or a loop.  Nodes and values belong to their graph.  Pointers to them stay valid until the graph
   is freed.  A node that was removed is in no block; functions that change graphs refuse it and its values, and
   opd_graph_next still leads from it to the node that followed.  Any number of threads may read a graph while no thread
   changes it.  opd_graph_value_uses, and each function that takes a graph which is not const, needs the graph for
   itself.
       for (opd_graph_node *node = opd_graph_first(graph); node; node = opd_graph_next(node)) {
           if (opd_graph_node_is(node, "aten::relu")) { opd_print_text(opd_graph_node_place(node)); }
       }
   Functions that take NULL instead of a graph, node, block or value return 0, false or NULL, without an error. */
typedef struct opd_graph_node opd_graph_node;
typedef struct opd_graph_block opd_graph_block;
typedef enum opd_graph_kind {
    OPD_GRAPH_OP,                /* calls an operator */
    OPD_GRAPH_CONSTANT,
    OPD_GRAPH_LIST,              /* makes a list of its inputs */
    OPD_GRAPH_TUPLE,
    OPD_GRAPH_UNPACK,            /* its outputs are the elements of its input, a list */
    OPD_GRAPH_IF,                /* input: a bool.  Runs block 0 if it is true, else block 1.  The outputs of this block
                                    become the outputs of the node */
    OPD_GRAPH_LOOP,              /* inputs: the largest number of rounds, whether the first round runs, and the first
                                    values.  Block 0 takes the number of the round and the values, and its outputs are
                                    whether another round follows, and the next values.  The outputs of the node are the
                                    last values */
    OPD_GRAPH_BUILTIN,           /* calls a function of TorchScript that is no operator, such as prim::GetAttr */
    OPD_GRAPH_FUNCTION           /* calls a C function with its own data, such as a part of an exported program.  The
                                    graphs of a condition or loop of such a program (torch.cond) are data of the
                                    function, which no function here reads or changes.  opd_program_open_graph makes
                                    them blocks, so that passes reach them */
} opd_graph_kind;
/* Return the first node of a graph, and the node that follows a node, in the order of the graph's text: the nodes in
   the blocks of a node follow it.  NULL: there is none.  Inside such a loop, the node may be removed, and nodes may be
   added before and after it; the loop then also visits those that were added after it. */
OPD_NEW opd_graph_node *opd_graph_first(const opd_graph *graph);
OPD_NEW opd_graph_node *opd_graph_next(const opd_graph_node *node);
/* Return input or output i of a graph, from 0 on.  If the graph returns several values, as a tuple or a list, its
   outputs are the elements.  Return NULL, and set an error, if there is no i. */
OPD_NEW opd_graph_value *opd_graph_input_at(const opd_graph *graph, int i);
OPD_NEW opd_graph_value *opd_graph_output_at(const opd_graph *graph, int i);

OPD_NEW opd_graph_kind opd_graph_node_kind(const opd_graph_node *node);
/* Returns the operator that a node calls, or NULL. */
OPD_NEW opd_op *opd_graph_node_op(const opd_graph_node *node);
/* Returns whether a node calls this operator or function: "aten::add" means any overload, "aten::add.Tensor" one.
   Names of other nodes are those of the graph's text, such as "prim::If". */
OPD_NEW bool opd_graph_node_is(const opd_graph_node *node, const char *name);
/* Write the name without the overload, such as "aten::add", and the line of a node in the graph's text.  The text is
   cut to `cap` bytes including the final zero.  Return the full length. */
OPD_NEW size_t opd_graph_node_name(const opd_graph_node *node, char *buf, size_t cap);
OPD_NEW size_t opd_graph_node_print(const opd_graph_node *node, char *buf, size_t cap);
/* Returns the place of the call in the source, "FILE:LINE"; NULL if it is not known. */
OPD_NEW const char *opd_graph_node_place(const opd_graph_node *node);
/* Returns whether a node writes into tensors, draws random numbers, prints, sends, or has another effect beside its
   results; or if it is not known. */
OPD_NEW bool opd_graph_node_has_effects(const opd_graph_node *node);
/* Return the numbers of inputs and outputs of a node, and one of them.  Return NULL, and set an error, if there is no
   i. */
OPD_NEW int opd_graph_node_ninputs(const opd_graph_node *node);
OPD_NEW int opd_graph_node_noutputs(const opd_graph_node *node);
OPD_NEW opd_graph_value *opd_graph_node_input(const opd_graph_node *node, int i);
OPD_NEW opd_graph_value *opd_graph_node_output(const opd_graph_node *node, int i);
/* Returns the value for the argument `name` of the operator's schema, such as "stride".  Returns NULL, and sets an
   error, if the operator has no such argument. */
OPD_NEW opd_graph_value *opd_graph_node_arg(const opd_graph_node *node, const char *name);
/* Return the number of blocks of a node, and one of them; and the block in which a node is. */
OPD_NEW int opd_graph_node_nblocks(const opd_graph_node *node);
OPD_NEW opd_graph_block *opd_graph_node_block(const opd_graph_node *node, int i);
OPD_NEW opd_graph_block *opd_graph_node_inside(const opd_graph_node *node);
/* Return the inputs and outputs of a block, its first node, and the node to which it belongs.  The body of a graph is a
   block, too: it belongs to no node (NULL), and its inputs and outputs are the graph's. */
OPD_NEW opd_graph_block *opd_graph_body(const opd_graph *graph);
OPD_NEW int opd_graph_block_ninputs(const opd_graph_block *block);
OPD_NEW int opd_graph_block_noutputs(const opd_graph_block *block);
OPD_NEW opd_graph_value *opd_graph_block_input(const opd_graph_block *block, int i);
OPD_NEW opd_graph_value *opd_graph_block_output(const opd_graph_block *block, int i);
OPD_NEW opd_graph_node *opd_graph_block_first(const opd_graph_block *block);
OPD_NEW opd_graph_node *opd_graph_block_owner(const opd_graph_block *block);

/* Returns the node that computes a value, or NULL if the value is an input.
   opd_graph_value_block: Returns the block of which a value is an input, or NULL if a node computes it. */
OPD_NEW opd_graph_node *opd_graph_value_node(const opd_graph_value *value);
OPD_NEW opd_graph_block *opd_graph_value_block(const opd_graph_value *value);
/* Write the name of a value without "%", such as "x" or "3", and its type as the graph's text has it, such as "int[]"
   or "Float(2, strides=[1], requires_grad=0, device=cpu)".  The text is cut to `cap` bytes including the final zero.
   Return the full length. */
OPD_NEW size_t opd_graph_value_name(const opd_graph_value *value, char *buf, size_t cap);
OPD_NEW size_t opd_graph_value_type(const opd_graph_value *value, char *buf, size_t cap);
/* Returns the kind of a value: OPD_TAG_TENSOR, OPD_TAG_INT, OPD_TAG_INTS, ...; OPD_TAG_LIST also for a tuple,
   OPD_TAG_CELL for an object or a dict, and OPD_TAG_OBJECT for a generator. */
OPD_NEW opd_tag opd_graph_value_tag(const opd_graph_value *value);
/* What a graph knows of a tensor: what it was when the graph was recorded, or what the graph's text says.  The lists
   belong to the graph. */
typedef struct opd_graph_info {
    opd_scalar_type dtype;
    opd_ints sizes, strides;
    opd_device device;
    bool requires_grad;
} opd_graph_info;
/* Writes to *info what the graph knows of a tensor, and returns true.  Returns false, and changes nothing, if it knows
   nothing or the value is no tensor. */
OPD_NEW bool opd_graph_value_info(const opd_graph_value *value, opd_graph_info *info);
/* Writes to *constant the value of a constant, or of a list that a node makes of constants, and returns true.  Returns
   false if the value is no constant; or if memory runs out, and then sets an error.  What other nodes append to a list
   does not count.  A tensor, a text or a cell belongs to the graph; the elements of a list belong to the innermost
   scope. */
OPD_NEW bool opd_graph_value_constant(const opd_graph_value *value, opd_value *constant);
/* A use of a value: as input `index` of a node; or, if node is NULL, as output `index` of a block. */
typedef struct opd_graph_use {
    opd_graph_node *node;
    opd_graph_block *block;
    int index;
} opd_graph_use;
/* Writes at most `cap` uses of a value, in the order in which they were made, and returns how many there are; -1 and
   sets an error if memory runs out.  If a graph returns several values, a node makes a tuple or list of them, and this
   node uses them. */
OPD_NEW int opd_graph_value_uses(const opd_graph_value *value, opd_graph_use *uses, int cap);

/* Open sizes: sizes that may differ from run to run, in graphs of opd_graph_trace_open, and in graphs whose text has
   names as sizes.  A run of such a graph first compares the sizes of the inputs with what the graph says.  An error
   names the input, the size and the reason: "input 1: size 0 is 7, but B is 5 from size 0 of input 0".
   opd_graph_nsizes: Returns the number of open sizes of a graph.
   opd_graph_size: Writes to *size what the graph knows of open size i, and returns true.  Returns false, and changes
   nothing, if there is no such size.  The texts belong to the graph.
   opd_graph_shape_print: Writes the sizes of a tensor, such as "(B, 2*T + 1, 64)", or the expression of an integer.
   opd_graph_guards_print: Writes the conditions that a run checks, one a line, such as "2 <= B <= 64" and
   "input 1: size 0 == B".  Both texts are cut to `cap` bytes including the final zero; the full length is returned.
   opd_graph_check_sizes: Checks these conditions without a run.  Returns 0, or -1 and sets an error. */
typedef struct opd_graph_open_size {
    const char *name;
    int64_t least, most;         /* the range; most is -1 if there is no upper bound */
    int64_t multiple_of;         /* the size must be a multiple of this number; 1: it may be any number */
    const char *reason;          /* the call for which the range is smaller than asked, or for which the size must be a
                                    multiple, such as "aten::view in model.c:30"; NULL: none */
} opd_graph_open_size;
OPD_NEW int opd_graph_nsizes(const opd_graph *graph);
OPD_NEW bool opd_graph_size(const opd_graph *graph, int i, opd_graph_open_size *size);
OPD_NEW size_t opd_graph_shape_print(const opd_graph_value *value, char *buf, size_t cap);
OPD_NEW size_t opd_graph_guards_print(const opd_graph *graph, char *buf, size_t cap);
OPD_NEW int opd_graph_check_sizes(const opd_graph *graph, opd_tensor *const *inputs, int ninputs);

/* Changing a graph.  Each function checks that values belong to the graph, are computed before they are used, and have
   types that their users accept.  The error names the node and its place.  If a function fails, the graph stays as it
   was.  Sizes and dtypes that the graph knows of later values are not computed again: opd_graph_infer does that.

   opd_graph_replace: Replaces all uses of `value` by `by`, except those by nodes from which `by` is computed: so f(x)
   can take the place of x.  Fails if another node uses `value` before `by` is computed.  Returns the number of uses
   that were replaced, or -1.
   opd_graph_set_input: Replaces input i of a node.  Returns 0, or -1.
   opd_graph_erase_node: Removes a node whose outputs are not used.  Returns 0, or -1. */
OPD_NEW int opd_graph_replace(opd_graph *graph, opd_graph_value *value, opd_graph_value *by);
OPD_NEW int opd_graph_set_input(opd_graph *graph, opd_graph_node *node, int i, opd_graph_value *value);
OPD_NEW int opd_graph_erase_node(opd_graph *graph, opd_graph_node *node);
/* Computes anew what the graph knows of its tensors (opd_graph_value_info): runs the graph on tensors without data that
   have the dtypes, sizes and devices of `inputs`, one for each input of the graph (ShapeProp of torch.fx).  Of tensors
   in blocks of conditions and loops, nothing is known then.  Of a tensor whose sizes a node changes in place (t_), the
   last sizes are known.  A graph with open sizes loses their names and guards: what it knows are the sizes of these
   inputs.  Returns 0; or -1 and sets an error, for example if an operator does not accept these sizes, or
   if a condition or a size depends on the numbers of a tensor; then nothing has changed. */
OPD_NEW int opd_graph_infer(opd_graph *graph, opd_tensor *const *inputs, int ninputs);
/* Checks a whole graph: each value is computed before it is used, operators accept their arguments, blocks have as many
   outputs as their nodes need, and outputs exist.  Returns 0; or -1 and sets an error that names the first node that is
   wrong.  Functions of this chapter leave no wrong graph behind, so only tests need this. */
OPD_NEW int opd_graph_check(opd_graph *graph);

/* Calls with C values.  OPD_GRAPH_CALL(graph, "aten::add.Tensor", x, y, 2) adds a call of an operator where nodes are
   added (opd_graph_insert_before), with arguments as OPD_CALL has them: x and y are values of the graph, other
   arguments are C values, and become constants.  It returns the first result of the call, so calls can stand in each
   other:
       opd_graph_insert_after(graph, x);
       y = OPD_GRAPH_CALL(graph, "aten::relu", OPD_GRAPH_CALL(graph, "aten::mm", x, weight));
   Here, weight is a value of the graph, or a tensor.  Arguments are in the order of the schema.  Arguments that are
   left out, and OPD_DEFAULT, take the schema's default.  OPD_GRAPH_NAMED("dim", 1) is an argument by name, and
   OPD_GRAPH_VALUES(x, y) a list of values of the graph.  There may be 16 arguments.  Without an overload in the name,
   the first overload that takes the arguments is called.  opd_graph_node_output(opd_graph_value_node(y), 1) is the
   second result.

   opd_graph_arg: An argument.  OPD_GRAPH_V(x) makes one from a value of the graph or a C value.
   opd_graph_call_args: Adds a call with args[nargs].  Returns its first result; NULL, without an error, if the operator
   has none.  On failure returns NULL and sets an error that names the operator, the argument and the place; then the
   graph stays as it was. */
typedef struct opd_graph_values { opd_graph_value *const *data; int64_t n; } opd_graph_values;
typedef enum opd_graph_arg_kind { OPD_GRAPH_ARG_C, OPD_GRAPH_ARG_VALUE, OPD_GRAPH_ARG_VALUES } opd_graph_arg_kind;
typedef struct opd_graph_arg {
    opd_graph_arg_kind kind;
    const char *name;            /* the name of the argument in the schema; NULL: the next one without a name */
    opd_graph_value *value;      /* of kind VALUE */
    opd_graph_values list;       /* of kind VALUES */
    opd_value constant;          /* of kind C: a number, bool, text, tensor, list, device or None */
} opd_graph_arg;
OPD_NEW opd_graph_value *opd_graph_call_args(opd_graph *graph, const char *name, const opd_graph_arg *args, int nargs);

/* Copying graphs.  The constants of a copy are the same tensors, and its nodes call the same functions.  The caller
   owns a new graph and frees it with opd_graph_free.

   opd_graph_copy: Returns a copy that can be changed; so also for the graph of a program or of a script
   (opd_program_set_graph, opd_script_set_graph).  It runs as the graph does, with the same inputs.
   opd_graph_inline: Copies the nodes of another graph to the place where nodes are added (opd_graph_insert_before).
   The values `args` take the place of its inputs.  The copies keep their source places and names; a name that another
   value has gets a number ("y.1").  Writes at most `cap` of its outputs to `results`, which may be
   `args`, and returns how many it has; or -1 and sets an error, and the results are NULL.
   opd_graph_extract: Returns a new graph that computes the values `outputs` from the values `inputs`: with the nodes
   between them, and with the nodes that write memory of these values.  Returns NULL and sets an error if `outputs` need
   another input, which the error names, or if the outputs are in blocks that do not contain each other.  The graph
   itself stays as it is. */
OPD_NEW opd_graph *opd_graph_copy(const opd_graph *graph);
OPD_NEW int opd_graph_inline(opd_graph *graph, const opd_graph *inner, opd_graph_value *const *args, int nargs,
                             opd_graph_value **results, int cap);
OPD_NEW opd_graph *opd_graph_extract(opd_graph *graph, opd_graph_value *const *inputs, int ninputs,
                                     opd_graph_value *const *outputs, int noutputs);
/* Returns whether two graphs have the same nodes in the same order, with equal constants; the bits of tensors are
   compared.  Names, known sizes and places do not count.  A graph that is printed and parsed again is equal to the
   first, if its constants fit into the text.
   opd_graph_hash: Returns a number that is the same for equal graphs, also in other processes of this version. */
OPD_NEW bool opd_graph_equal(const opd_graph *graph, const opd_graph *other);
OPD_NEW uint64_t opd_graph_hash(opd_graph *graph);

/* Rewriting (replace_pattern of torch.fx).  A pattern is a graph: its inputs stand for any values of the right types,
   and its nodes for the same calls.  Trace it from a function, or write it as text, where the inputs may also be
   numbers:
   opd_graph_parse("graph(%x : Tensor, %n : int):\n ...").  Constants stand for equal constants; one that the pattern
   uses several times also for several equal ones.  All values inside a match but the outputs have no other users; only
   constants, and lists of constants, may have some.  A match does not cover nodes of several blocks, has no list to
   which a node appends, and does not stand around a node that writes memory which the match uses, or that uses memory
   which the match writes.

   A match: the values of a graph at the places of a pattern's values.  It is valid until the function that was given it
   returns.
   opd_match_value: Returns the value at the place of a value of the pattern, such as one that opd_graph_find
   returns. */
typedef struct opd_match opd_match;
OPD_NEW opd_graph_value *opd_match_value(const opd_match *match, const opd_graph_value *value);
typedef struct opd_rewrite_options {
    bool (*when)(void *user, const opd_match *match);       /* returns whether a match is replaced; NULL: all are.  Must
                                                               not change the graph */
    int (*make)(void *user, opd_graph *graph, const opd_match *match, opd_graph_value **results);
                                 /* adds nodes to the graph with opd_graph_call and the like, which add them behind the
                                    match; and writes a value for each output of the pattern to `results`.  The nodes
                                    may use values of the match.  Returns 0, or -1 with an error */
    void *user;
    bool ignore_constants;       /* numbers stand for any numbers */
} opd_rewrite_options;
/* Replaces each match of `pattern` by the nodes of `replacement`, a graph with the same inputs and outputs; or, if it
   is NULL, by what options->make makes.  Matches are searched from the first node on, without those that begin in nodes
   which this call has added.  Nodes whose results are not used any more are removed.  options: NULL means no
   conditions.  Returns the number of matches that were replaced, or -1 and sets an error: then matches before the one
   that failed are replaced, and that one stays as it was, but for changes that `make` has made to other nodes. */
OPD_NEW int opd_graph_rewrite(opd_graph *graph, const opd_graph *pattern, const opd_graph *replacement,
                              const opd_rewrite_options *options);

/* Answers whether the call of a node belongs into parts of a graph.  If it sets an error, opd_graph_partition fails. */
typedef bool (*opd_graph_question)(void *user, const opd_graph_node *node);
/* A part of a graph: nodes that follow each other in one block, the tensors that they take from outside, and the
   tensors that they give to other nodes or as outputs (none, if nothing uses their results).  Constants that they use
   are not among the inputs, unless a node of the graph writes them.  The lists belong to the innermost scope, and say
   how the graph was when it was divided: to replace the nodes of several parts, begin with the last part, because later
   parts use the outputs of earlier ones. */
typedef struct opd_part {
    opd_graph_node *const *nodes; int nnodes;
    opd_graph_value *const *inputs; int ninputs;
    opd_graph_value *const *outputs; int noutputs;
} opd_part;
/* Divides a graph into parts: the largest groups of calls for which `question` returns true, so that no part needs a
   value that is computed from its own results outside of it (CapabilityBasedPartitioner of torch.fx).  The question is
   asked once for each call of an operator that takes tensors and constants, gives tensors, writes nothing and draws no
   random numbers; other nodes are never in a part, nor is a call that takes a list to which a node appends.  It must
   not change the graph.  Nor is a view in a part if a node of the graph writes its memory.  Puts the nodes of the graph
   into an order in which the nodes of each part follow each other.  A node stays before a write to memory that it
   reads; inputs of the graph may share memory.  Writes at most `cap` parts, in order, and returns how many there are,
   or -1 and sets an error. */
OPD_NEW int opd_graph_partition(opd_graph *graph, opd_graph_question question, void *user, opd_part *parts, int cap);
/* Returns a part as a new graph, with copies of the constants that it uses.  Returns NULL and sets an error on failure.
   opd_graph_extract is for values, and also copies the nodes that write memory of the inputs before the part. */
OPD_NEW opd_graph *opd_graph_extract_part(opd_graph *graph, const opd_part *part);

/* Compilers for parts of graphs, such as the compiler of an accelerator (backends of torch.compile, delegates of
   ExecuTorch). */
typedef struct opd_part_function {
    const char *name;            /* the name of the node in the graph's text, copied; NULL: "part" */
    opd_transform_fn run;        /* computes the outputs of the part.  Returns their number; 0 if it cannot compute this
                                    call, which the operators of the part then do; or -1 and sets an error */
    void *user;
    opd_destroy destroy;         /* called with `user` when no graph has the part any more; NULL: nothing is called */
} opd_part_function;
typedef struct opd_part_compiler {
    opd_graph_question supported;          /* returns whether the compiler can compute a call */
    int (*compile)(void *user, const opd_graph *part, opd_part_function *function);
                                 /* compiles a part: sets the members of *function, which are NULL before, and
                                    returns 0.  Returns 1 to leave the part as it is; -1 with an error.  It must not
                                    change the graph that is divided.  The part is a graph whose inputs and outputs
                                    are tensors; it lives as long as the function */
    int least;                   /* parts with fewer calls stay as they are */
    void *user;
} opd_part_compiler;
/* Divides a graph into parts (opd_graph_partition), lets `compiler` compile them, and puts a node that calls the
   compiled function at the place of each part.  The other nodes stay; results of parts stay on their device.  In runs
   under transforms, autocast or for gradients, and while a graph is recorded, the part's operators run instead of the
   function.  The function may run in several threads at the same time.  It must compute what the operators compute:
   results with another dtype or number of dims than the graph knows are an error, if the inputs have those that it
   knows.  Parts with more than OPD_TRANSFORM_OUTPUTS outputs stay as they are.  Returns the number of parts that were
   compiled, or -1 and sets an error; then the graph computes what it did, and its nodes may have another order.
   A graph with such nodes can be copied and run, but not saved, and its text cannot be parsed. */
OPD_NEW int opd_graph_delegate(opd_graph *graph, const opd_part_compiler *compiler);

/* Passes for graphs whose dtypes and sizes are known: traced graphs, or after opd_graph_infer. */

/* The place of a tensor in the memory of a run. */
typedef struct opd_graph_slot {
    opd_graph_value *value;      /* a tensor that is no view */
    size_t offset, bytes;        /* from the beginning of the memory; offsets are multiples of 64 */
    int first, last;             /* the numbers of the nodes of the graph's body, from 0 on, that compute the tensor and
                                    that use its memory last; of an output of the graph, last is the number of nodes */
} opd_graph_slot;
typedef struct opd_graph_memory {
    size_t total;                /* bytes of memory that the plan needs */
    size_t apart;                /* the sum of the bytes of all tensors */
    size_t alive;                /* the largest sum of bytes that are alive at the same time: no plan needs less */
    int unknown;                 /* the number of tensors, and lists of tensors, whose sizes the graph does not know */
} opd_graph_memory;
/* opd_graph_plan_memory: Plans the memory of the tensors that the nodes of a graph's body compute on a kind of device:
   where each lies in one block of memory, so that tensors that are alive at the same time do not overlap.  Inputs and
   constants need no memory, nor do views and results of in-place operators, which are alive as long as the tensor whose
   memory they have.  A tensor that may be a view or a copy (reshape) gets memory, too.  Tensors in blocks of conditions
   and loops are not in the plan.  Writes at most `cap` slots, in the order of the nodes, and *memory (unless it is
   NULL).  Returns the number of slots, or -1 and sets an error.
   opd_graph_print_memory: Writes the plan as a table, with a bar for the time in which each tensor is alive.  The text
   is cut to `cap` bytes including the final zero.  Returns the full length; 0 and sets an error.
   Runs of graphs plan their memory themselves (opd_graph_run): this is for programs that write code for a device. */
OPD_NEW int opd_graph_plan_memory(opd_graph *graph, opd_device device, opd_graph_slot *slots, int cap,
                                  opd_graph_memory *memory);
OPD_NEW size_t opd_graph_print_memory(opd_graph *graph, opd_device device, char *buf, size_t cap);
/* Makes each group of at least `least` pointwise operators (0: 2) a part that is compiled as C, so that it runs as one
   loop.  It is opd_graph_delegate with a compiler that takes the pointwise operators of namespace aten and compiles
   parts with opd_graph_compile: what is said there holds, too.  In-place operators are not fused.  The first run of the
   graph compiles the parts, which takes about a second for each.  To compile the whole graph, use opd_graph_compile.
   Returns the number of parts, or -1 and sets an error. */
OPD_NEW int opd_graph_fuse_pointwise(opd_graph *graph, int least);
/* Makes convolutions of images (conv2d, convolution) compute with the channels last, for devices on which this is
   faster: converts tensors where chains of convolutions and of operators that keep the layout (pointwise operators,
   batch norms, pooling, cat) begin and end, and constant weights once.  Between them, there are no conversions.  A
   chain may write in place (relu_).  Memory that other nodes write stays as it is, blocks stay as they are, and results
   of the graph have their strides.
   Returns the number of conversions in the graph; or -1 and sets an error, and then the graph computes what it did.  On
   the CPU, the kernels of this library are as fast or faster without this pass. */
OPD_NEW int opd_graph_channels_last(opd_graph *graph);
