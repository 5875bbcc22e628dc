//----------------------------------------------------------------------------------------------------------------------
//  >>api:scripts    TorchScript: source compiled at run time, archives of torch.jit.save run and trained
//----------------------------------------------------------------------------------------------------------------------

/* A script: functions of a source, or an object of an archive with its methods.  Methods become graphs when they are
   first asked for, what they call is part of them; so one thread asks first.  What is not known (an operator, a class)
   is an error when a run reaches it.  In a source, functions of torch, torch.nn.functional (also as F), torch.linalg,
   torch.fft, torch.special and torch.autograd, and methods of Tensor, have the defaults that they have in Python.
       opd_script *script = opd_script_compile("def f(x: Tensor, n: int) -> Tensor:\n    return x * n\n", NULL);
       opd_value args[] = {opd_value_tensor(x), opd_value_int(3)}, result;
       opd_script_run(script, "f", args, 2, &result); */
typedef struct opd_script opd_script;
/* Compiles Python as TorchScript takes it: functions and classes, which take nothing over from each other, and no
   global values, try or lambda.  A source may have a class that is derived from
   torch.nn.Module or torch.jit.ScriptModule and that no function makes.  Then the script is an object of the last such
   class: its __init__ runs now, with its defaults, and its methods are the script's.  opd_script_module has the
   parameters and buffers that __init__ sets (torch.nn.Parameter, register_buffer).  name: what errors call the source;
   NULL: "<string>".  NULL with an error that shows the line. */
OPD_API opd_script *opd_script_compile(const char *source, const char *name);
/* Opens an archive of torch.jit.save, scripted, traced or frozen.  Tensors lie in the file's memory.  from_bytes: one
   in memory, which is copied.  NULL with an error.
   Quantized tensors are tensors of float32 here, of the numbers that theirs stand for: quantized layers, and pooling,
   means, upsampling and activations behind them, round what they give to the steps of quint8 that PyTorch's have; other
   operators (a padding, a sum), and those that get their input round by round of a loop, do not round, and do not end
   at 255.  No gradient passes a quantized layer. */
OPD_API opd_script *opd_script_load(const char *path);
OPD_API opd_script *opd_script_from_bytes(const void *data, size_t size);
/* Writes an archive for opd_script_load and torch.jit.load.  A compiled source is saved as a module: its methods are
   the functions, and forward is the last one.  What they call, of the source or of torch.nn.functional, is in them.
   A loaded archive is saved with the parameters and attributes that its objects have now.  An operator that is not
   defined here is an error.  0, or -1 with an error. */
OPD_API int opd_script_save(const opd_script *script, const char *path);
OPD_API void opd_script_free(opd_script *script);
/* The parameters and buffers of an archive's object, which shares them; belongs to the script. */
OPD_API opd_module *opd_script_module(const opd_script *script);
/* Its methods, or functions.  A method that is NULL or "", here and below, is forward, or the last function. */
OPD_API int opd_script_count(const opd_script *script);
OPD_API const char *opd_script_name(const opd_script *script, int place);
/* What a method takes, without self: how many, their names, and their types as annotations say them ("List[int]"), cut
   to cap bytes with the zero; place -1: the type that is returned.  -1 and NULL with an error. */
OPD_API int opd_script_nargs(const opd_script *script, const char *method);
OPD_API const char *opd_script_arg_name(const opd_script *script, const char *method, int place);
OPD_API size_t opd_script_arg_type(const opd_script *script, const char *method, int place, char *buf, size_t cap);
/* Runs a method: arguments by position, then by name; those left out have their defaults.  *result belongs to the
   innermost scope.  Calls pass through the dispatcher: results are on the tape.  0, or -1 with an error. */
OPD_API int opd_script_run(const opd_script *script, const char *method, const opd_value *args, int nargs,
                           opd_value *result);
OPD_API int opd_script_run_named(const opd_script *script, const char *method, const opd_value *args, int nargs,
                                 const opd_keyword *keywords, int nkeywords, opd_value *result);
/* Runs forward (or the last function) as an opd_transform_fn, the script being user. */
OPD_API int opd_script_function(void *script, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* The operators and builtin functions of all methods ("aten::add.Tensor"), how often each is there, and whether it is
   missing; count and missing may be NULL.  NULL beyond the last. */
OPD_API const char *opd_script_operator(const opd_script *script, int64_t place, int64_t *count, bool *missing);
/* The graph of a method, with what it calls in it: opd_graph_print shows it as PyTorch does.  Belongs to the script. */
OPD_API const opd_graph *opd_script_graph(const opd_script *script, const char *method);

