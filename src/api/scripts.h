//----------------------------------------------------------------------------------------------------------------------
//  >>api:scripts    TorchScript: compiling source at run time, archives of torch.jit.save (may change)
//----------------------------------------------------------------------------------------------------------------------

/* A script: the functions of a source text, or an object of an archive with its methods.  When a method is first used,
   it is compiled to a graph, together with the functions that it calls.  Several threads may use a script, also for the
   first time.  A run fails when it reaches an unknown operator or class.
   In a source, functions of torch, torch.nn.functional (also as F), torch.linalg, torch.fft, torch.special and
   torch.autograd, and methods of Tensor, have the defaults that they have in Python.
       opd_script *script = opd_script_compile("def f(x: Tensor, n: int) -> Tensor:\n    return x * n\n", NULL);
       opd_value args[] = {opd_value_tensor(x), opd_value_int(3)}, result;
       opd_script_run(script, "f", args, 2, &result); */
typedef struct opd_script opd_script;
/* Compiles Python source as TorchScript does: functions and classes without inheritance.  Global values, try and lambda
   are not supported.
   If the source has a class derived from torch.nn.Module or torch.jit.ScriptModule, and no function creates an object
   of this class, the script is an object of this class (of the last such class).  Then __init__ runs now, with the
   defaults of its arguments, and the methods of the class are the methods of the script.  opd_script_module returns the
   parameters and buffers that __init__ sets (torch.nn.Parameter, register_buffer).
   Called functions and unrolled loops are inlined.  A script of n bytes fails if its graphs would have more than
   500,000 + 16 n values.
   name: The source's name in errors; NULL means "<string>".  On failure returns NULL and sets an error that shows the
   line. */
OPD_NEW opd_script *opd_script_compile(const char *source, const char *name);
/* opd_script_load opens an archive of torch.jit.save: scripted, traced or frozen.  Tensors use the file's memory.
   opd_script_from_bytes copies an archive from memory.  On failure, both return NULL and set an error.
   Loading compiles text of the archive, but runs nothing of it.  torch.jit.load restores objects by the methods
   __setstate__ of their classes.  If such a method only moves parts of the saved state to attributes, as in all
   quantized layers of PyTorch, these functions do what it says.  If it does anything else, they fail: see
   opd_script_load_with.
   Quantized tensors become float32 tensors of the numbers that they represent.  Quantized layers, and pooling, means,
   upsampling and activations after them, round their results to PyTorch's steps of quint8.  Other operators (such as
   padding or a sum), and operators whose input changes in a loop, do not round, and do not limit results to the range
   of quint8.  A quantized layer passes no gradient on. */
OPD_NEW opd_script *opd_script_load(const char *path);
OPD_NEW opd_script *opd_script_from_bytes(const void *data, size_t size);
/* Options of opd_script_load_with and opd_script_from_bytes_with. */
typedef struct opd_script_options {
    bool run_setstate;           /* runs the methods __setstate__ of the archive's classes, as torch.jit.load does.  Set
                                    this only for an archive that you trust, or under limits (opd_limits_set): such a
                                    method may run for ever */
} opd_script_options;
/* Load an archive as opd_script_load and opd_script_from_bytes do, with options; NULL: the defaults. */
OPD_NEW opd_script *opd_script_load_with(const char *path, const opd_script_options *options);
OPD_NEW opd_script *opd_script_from_bytes_with(const void *data, size_t size, const opd_script_options *options);
/* Writes an archive for opd_script_load and torch.jit.load.  A compiled source is saved as a module.  The module's
   methods are the functions of the source, and forward is the last one.  The methods include the functions that they
   call, from the source or from torch.nn.functional.  A loaded archive is saved with the current parameters and
   attributes of its objects.  Fails if an operator is not registered in this program.  Returns 0, or -1 and sets an
   error. */
OPD_NEW int opd_script_save(const opd_script *script, const char *path);
/* Writes a graph, such as a traced one, as an archive for opd_script_load and torch.jit.load.  Its object has the
   method forward and the tensors of `module` (NULL: none) as parameters, buffers and attributes, under their names, in
   submodules where a name has dots.  These tensors are the first inputs of the graph, in this order; forward takes the
   other inputs.  Conditions and loops (opd_cond, opd_while, opd_scan, opd_map) become "if", "for" and "while".
   Constant tensors become attributes, graph_constant_0 and so on. forward returns what the graph returns: a tensor, or
   a tuple.  Fails, with an error that names the node and its place, for nodes that TorchScript does not have: compiled
   parts, functions of exported programs, generators.  Returns 0, or -1 and sets an error; then no file is written. */
OPD_NEW int opd_graph_save_script(const opd_graph *graph, const opd_module *module, const char *path);
OPD_NEW void opd_script_free(opd_script *script);
/* Returns the parameters and buffers of an archive's object.  The module and the object share them.  The module belongs
   to the script. */
OPD_NEW opd_module *opd_script_module(const opd_script *script);
/* opd_script_count returns the number of a script's methods (or functions), and opd_script_name the name of one.  In
   the functions below, the method NULL or "" means forward or, if the script has no forward, the last function. */
OPD_NEW int opd_script_count(const opd_script *script);
OPD_NEW const char *opd_script_name(const opd_script *script, int place);
/* Describe the arguments of a method, without self.  opd_script_nargs returns their number, and opd_script_arg_name the
   name of one.  opd_script_arg_type writes the type of one (place -1: the return type) as annotations write it
   ("List[int]"), cut to cap bytes including the final zero, and returns the full length.  On failure, return -1, NULL
   or 0 and set an error. */
OPD_NEW int opd_script_nargs(const opd_script *script, const char *method);
OPD_NEW const char *opd_script_arg_name(const opd_script *script, const char *method, int place);
OPD_NEW size_t opd_script_arg_type(const opd_script *script, const char *method, int place, char *buf, size_t cap);
/* Runs a method.  args are positional; opd_script_run_named also takes keyword arguments.  Arguments left out have
   their defaults.  *result (result may be NULL) belongs to the innermost scope.  Calls pass through the dispatcher, so
   results are part of the autograd graph.  Returns 0, or -1 and sets an error. */
OPD_NEW int opd_script_run(const opd_script *script, const char *method, const opd_value *args, int nargs,
                           opd_value *result);
OPD_NEW int opd_script_run_named(const opd_script *script, const char *method, const opd_value *args, int nargs,
                                 const opd_keyword *keywords, int nkeywords, opd_value *result);
/* Runs forward (or the last function) as an opd_transform_fn.  Pass the script as user.  outputs has room for
   OPD_TRANSFORM_OUTPUTS tensors. */
OPD_NEW int opd_script_function(void *script, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* Lists the operators and builtin functions that the script's methods call, numbered from 0.  Returns the name of
   number `place` ("aten::add.Tensor"), or NULL beyond the last.  Sets *count to the number of places that call it, and
   *missing to true if this program does not have it; both pointers may be NULL. */
OPD_NEW const char *opd_script_operator(const opd_script *script, int64_t place, int64_t *count, bool *missing);
/* Returns the graph of a method, which includes the functions that it calls.  opd_graph_print shows it as PyTorch does.
   The graph belongs to the script.  If the script has an object, the first input of the graph is this object. */
OPD_NEW const opd_graph *opd_script_graph(const opd_script *script, const char *method);
/* Replaces the graph of a method by a changed copy of it, which opd_graph_copy has made and which must have the same
   inputs and a result of the same type.  The script owns `graph` from then on.  Runs of the method use it; methods that
   call this method do not, because their graphs contain its calls.  The script can no longer be saved.  No other thread
   may use the script meanwhile.  Returns 0, or -1 and sets an error; then the caller still owns `graph`. */
OPD_NEW int opd_script_set_graph(opd_script *script, const char *method, opd_graph *graph);

