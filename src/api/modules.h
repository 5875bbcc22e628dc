//----------------------------------------------------------------------------------------------------------------------
//  >>api:modules    modules: named parameters and buffers, loading, saving, quantising; initialisers (may change)
//----------------------------------------------------------------------------------------------------------------------

/* A collection of tensors under dotted names ("0.weight"), in the order in which they were added.  A module holds the
   tensors of a network, but not its forward code.  Weight files, exported programs and optimizers work with modules.
   Only one thread may use a module while it changes.  Any number of threads may read it. */
typedef struct opd_module opd_module;
typedef enum opd_module_kind {
    OPD_MODULE_PARAMETER,        /* trained; a leaf tensor */
    OPD_MODULE_BUFFER,           /* saved with the parameters, not trained; such as running means */
    OPD_MODULE_CONSTANT          /* neither saved nor trained: a computed value, or a constant of a program */
} opd_module_kind;
OPD_NEW opd_module *opd_module_new(void);                                     /* returns an empty module, or NULL */
OPD_NEW opd_module *opd_module_keep(opd_module *module);                      /* adds an owner; returns module */
OPD_NEW void opd_module_free(opd_module *module);                             /* removes an owner; NULL is allowed */
/* opd_module_add: Adds tensor at the end of the module, which keeps a reference to it.  requires_grad does not change.
   Returns 0, or -1 and sets an error if the name is taken or empty, or if a parameter is not a leaf.
   opd_module_set: Replaces the tensor of that name.  Returns 0, or -1 and sets an error if the name does not exist or a
   parameter is not a leaf. */
OPD_NEW int opd_module_add(opd_module *module, const char *name, opd_tensor *tensor, opd_module_kind kind);
OPD_NEW int opd_module_set(opd_module *module, const char *name, opd_tensor *tensor);
/* Returns the tensor of that name, borrowed.  If there is none, returns NULL and sets an error that contains the
   name. */
OPD_NEW opd_tensor *opd_module_get(const opd_module *module, const char *name);
/* opd_module_find: Returns the index of that name.  Returns -1, without an error, if there is none.
   opd_module_count: Returns the number of tensors. */
OPD_NEW int64_t opd_module_find(const opd_module *module, const char *name);
OPD_NEW int64_t opd_module_count(const opd_module *module);
/* opd_module_name, opd_module_at and opd_module_kind_at return the name of tensor i, the tensor itself (borrowed), and
   its kind.  If i is out of range, they return NULL, NULL and OPD_MODULE_CONSTANT. */
OPD_NEW const char *opd_module_name(const opd_module *module, int64_t i);
OPD_NEW opd_tensor *opd_module_at(const opd_module *module, int64_t i);
OPD_NEW opd_module_kind opd_module_kind_at(const opd_module *module, int64_t i);

/* A pattern selects tensors by name: '*' matches any characters, '?' one character.  If the pattern begins with '!', it
   selects all names that do not match the rest.  NULL selects all names.  A tensor with two names counts once.
   Functions that change the selected tensors return their number, or -1 and set an error.  These functions also fail if
   the pattern matches nothing. */
/* Selects the parameters of floating and complex dtypes whose names match `pattern`, and writes them into tensors[cap]
   (borrowed), at most cap.  Returns how many are selected, or -1 and sets an error. */
OPD_NEW int opd_module_parameters(const opd_module *module, const char *pattern, opd_tensor **tensors, int cap);
/* Returns the number of elements of all selected parameters of floating and complex dtypes, or -1 and sets an error. */
OPD_NEW int64_t opd_module_numel(const opd_module *module, const char *pattern);
/* Sets requires_grad of the selected parameters. */
OPD_NEW int opd_module_set_requires_grad(opd_module *module, const char *pattern, bool on);
OPD_NEW int opd_module_zero_grad(opd_module *module);                         /* removes the gradients of all tensors */
/* Moves all tensors to device and converts floating tensors to dtype (Module.to).  If device is NULL, tensors stay on
   their device.  If dtype is OPD_DTYPE_NONE, dtypes stay.  The tensor handles stay the same, so an optimizer continues
   with them.  The state of an optimizer does not move.  Returns 0, or -1 and sets an error. */
OPD_NEW int opd_module_to(opd_module *module, const opd_device *device, opd_scalar_type dtype);
/* opd_module_sgd, opd_module_adam, opd_module_adamw: Create an optimizer for the selected parameters, like opd_sgd_new,
   opd_adam_new and opd_adamw_new.
   opd_module_group: Moves the optimizer's parameters that match pattern into a new group.  Returns the group's number,
   or -1 and sets an error:
       opd_optimizer *adam = opd_module_adamw(module, NULL, NULL);
       opd_optimizer_set_option(adam, opd_module_group(module, adam, "*.bias"), "weight_decay", 0); */
OPD_NEW opd_optimizer *opd_module_sgd(const opd_module *module, const char *pattern, const opd_sgd_options *options);
OPD_NEW opd_optimizer *opd_module_adam(const opd_module *module, const char *pattern, const opd_adam_options *options);
OPD_NEW opd_optimizer *opd_module_adamw(const opd_module *module, const char *pattern, const opd_adam_options *options);
OPD_NEW int opd_module_group(const opd_module *module, opd_optimizer *optimizer, const char *pattern);

/* Creates a module from the tensors of a file (>>api:exchange) whose names begin with prefix, which is removed from the
   names.  A NULL prefix selects all tensors.  The tensors are in the mapped file, which is never written.  Tensors that
   required grad become parameters.  If none did, as in a state dict, all tensors of floating dtypes become parameters,
   except running_mean and running_var.  Parameters require grad.
   Tied weights: names of a checkpoint whose tensors have the same storage, offset, sizes, strides and dtype share one
   tensor.  The metadata of a .safetensors file may name further tied weights, which also share one tensor.  An object
   of an unsupported class is left out if it
   contains no tensors; otherwise the call fails.  On failure returns NULL and sets an error. */
OPD_NEW opd_module *opd_module_open(const char *path, const char *prefix);
/* opd_module_load: Copies the tensors of a file into the tensors of the module with the same names, as load_state_dict
   does.  Any dtype is converted into any other.  Constants are not expected in the file.  If a tensor has several names
   in the module, the file needs only one of them.  Returns 0, or -1 and sets an error that lists the mismatches; then
   nothing is changed.
   opd_module_match: What opd_module_load has found for one name. */
typedef enum opd_module_match {
    OPD_MODULE_COPIED,           /* the file's tensor was copied into the module */
    OPD_MODULE_MISSING,          /* the module has the name, the file does not */
    OPD_MODULE_UNEXPECTED,       /* the file has the name, the module does not */
    OPD_MODULE_MIS_SIZED         /* the two tensors have different sizes */
} opd_module_match;
typedef struct opd_module_load_options {
    const char *strip;           /* use only names of the file that begin with this prefix, such as "model/", and remove
                                    the prefix */
    const char *add;             /* then put this prefix in front of the name, such as "encoder." */
    bool lenient;                /* missing and unexpected names are not errors */
    bool skip_sizes;             /* different sizes are not an error; such a tensor is not changed */
    void (*report)(opd_module_match match, const char *name, void *user);   /* called for each name; may be NULL */
    void *user;
} opd_module_load_options;
OPD_NEW int opd_module_load(opd_module *module, const opd_tensor_file *file, const opd_module_load_options *options);
/* Writes parameters and buffers to a file.  If path ends with .safetensors or .gguf, that format is used, else the
   format of torch.save(state_dict).  Only GGUF has tensors in blocks (opd_quantize_module); it has no bool or
   complex tensors.  A tensor with several names is written once.  In a GGUF file, it has its first name.  In a
   checkpoint, the names share a storage.  A
   .safetensors file has the tensor under its first name, and {other name: first name} in the metadata, as
   safetensors.torch.save_model and load_model do.  Returns 0, or -1 and sets an error. */
OPD_NEW int opd_module_save(const opd_module *module, const char *path);
/* opd_training_save: Writes the state of a training run: {"model": state dict, "optimizer": optimizer.state_dict() in
   PyTorch's layout, and `count` values under the paths in names} (see opd_checkpoint_file_save).  module or optimizer
   may be NULL.  In a .safetensors file, numbers are written as 0-dim tensors, and texts as metadata.
   opd_training_load: Restores module and optimizer exactly, so that training continues bit for bit.  The file is one of
   opd_training_save, or of PyTorch's torch.save({"model": ..., "optimizer": ...}).
   opd_optimizer_load: Restores only the optimizer, from names that begin with prefix ("optimizer/").
   Groups must have the same sizes as in the file.  Each returns 0.  On failure, changes nothing, returns -1 and sets an
   error. */
OPD_NEW int opd_training_save(const char *path, const opd_module *module, const opd_optimizer *optimizer,
                              const char *const *names, const opd_value *values, int64_t count);
OPD_NEW int opd_training_load(const opd_tensor_file *file, opd_module *module, opd_optimizer *optimizer);
OPD_NEW int opd_optimizer_load(opd_optimizer *optimizer, const opd_tensor_file *file, const char *prefix);

/* Returns the gain for layers before a nonlinearity: "linear", "sigmoid", "tanh", "relu", "leaky_relu" (param is the
   slope; NaN means 0.01), "selu", "conv2d" and similar names of PyTorch.  If the name is unknown, returns NaN and sets
   an error.  Follows torch.nn.init.calculate_gain. */
OPD_NEW double opd_init_calculate_gain(const char *nonlinearity, double param);
/* Writes the numbers of inputs and outputs of one unit to *fan_in and *fan_out, which may be NULL.  tensor is a weight
   [out, in, ...].  Returns 0, or -1 and sets an error. */
OPD_NEW int opd_init_fans(const opd_tensor *tensor, int64_t *fan_in, int64_t *fan_out);
/* Fill tensor as the functions of torch.nn.init do, and return it.  The tensor may require grad.  On failure, return
   NULL and set an error.  Some of them use the fans (the numbers of inputs and outputs of one unit); for these, tensor
   must be a weight [out, in, ...] of a linear layer or a convolution.  nonlinearity and param are as for
   opd_init_calculate_gain. */
OPD_NEW opd_tensor *opd_init_uniform_(opd_tensor *tensor, double from, double to);
OPD_NEW opd_tensor *opd_init_normal_(opd_tensor *tensor, double mean, double std);
OPD_NEW opd_tensor *opd_init_trunc_normal_(opd_tensor *tensor, double mean, double std, double from, double to);
OPD_NEW opd_tensor *opd_init_constant_(opd_tensor *tensor, double value);
OPD_NEW opd_tensor *opd_init_ones_(opd_tensor *tensor);
OPD_NEW opd_tensor *opd_init_zeros_(opd_tensor *tensor);
OPD_NEW opd_tensor *opd_init_eye_(opd_tensor *tensor);
OPD_NEW opd_tensor *opd_init_dirac_(opd_tensor *tensor, int64_t groups);
OPD_NEW opd_tensor *opd_init_xavier_uniform_(opd_tensor *tensor, double gain);
OPD_NEW opd_tensor *opd_init_xavier_normal_(opd_tensor *tensor, double gain);
OPD_NEW opd_tensor *opd_init_kaiming_uniform_(opd_tensor *tensor, double param, bool fan_out, const char *nonlinearity);
OPD_NEW opd_tensor *opd_init_kaiming_normal_(opd_tensor *tensor, double param, bool fan_out, const char *nonlinearity);
OPD_NEW opd_tensor *opd_init_orthogonal_(opd_tensor *tensor, double gain);
OPD_NEW opd_tensor *opd_init_sparse_(opd_tensor *tensor, double sparsity, double std);

/* Writes the SHA-256 of `count` tensors as 64 hexadecimal digits and a final 0 into `text`, which has at least 65
   bytes.  Two lists of tensors have the same hash if their dtypes, sizes and elements are the same, bit for bit; the
   device, the strides and the byte order of the machine do not matter, and each NaN counts as the same NaN.  The hash
   is that of these bytes: for each tensor, a line such as "float32 [2, 3]\n", then its elements in the order of
   contiguous tensors, the lowest byte first.  Autograd records nothing.  Fails if a tensor is NULL or has no numbers
   (fake, meta, batched).  Returns 0, or -1 and sets an error.  Any thread may call it, while no other thread writes the
   tensors. */
OPD_NEW int opd_tensor_sha256(opd_tensor *const *tensors, int count, char *text);
/* Audits say where two runs of a training part: in which step and tensor, in forward, backward or the update.  A run
   writes a text file with hashes of its tensors.  A run that repeats it compares its tensors with the file.
       opd_audit *audit = again ? opd_audit_check("run.audit", 0) : opd_audit_begin("run.audit", 0);
       opd_audit_module(audit, NULL, module);
       for (...) {
           loss = ...;
           opd_audit_tensor(audit, "loss", loss);
           opd_backward(loss);
           opd_audit_step(audit);                    -- after backward, before the optimizer's step
           opd_optimizer_step(optimizer);
           opd_optimizer_zero_grad(optimizer);
       }
       opd_audit_end(audit);
   Audits change nothing in the training, and switch no mode on: other processors give the same bits only with
   opd_same_bits_set.  Only one thread may use an audit at a time; several threads may have one each. */
typedef struct opd_audit opd_audit;
/* opd_audit_begin: Begins an audit that writes the file `path`; an existing file is replaced.
   opd_audit_check: Begins an audit that compares the run with the file `path`, which opd_audit_begin has written.
   step: the number of the first step, usually 0.  A run that continues a checkpoint after 500 steps begins with step
   500.  Steps are then counted by one.
   Both return an audit that the caller ends with opd_audit_end, or NULL and set an error: the file cannot be opened, is
   no audit, or does not have this step. */
OPD_NEW opd_audit *opd_audit_begin(const char *path, int64_t step);
OPD_NEW opd_audit *opd_audit_check(const char *path, int64_t step);
/* opd_audit_watch: From now on, each step has the values of `tensor`, which the audit keeps, and its gradient if the
   tensor requires grad; then it must be a leaf.  name: at most 511 bytes without control characters, and no name that
   is watched already.
   opd_audit_module: Watches all parameters and buffers that the module has now, in its order.  prefix: is put in front
   of their names, which are at most 511 bytes long then; may be NULL.
   Both return 0.  On failure, change nothing, return -1 and set an error. */
OPD_NEW int opd_audit_watch(opd_audit *audit, const char *name, opd_tensor *tensor);
OPD_NEW int opd_audit_module(opd_audit *audit, const char *prefix, const opd_module *module);
/* opd_audit_tensor: Adds the values of a tensor of any kind to the current step: inputs, results of layers, losses.
   A step begins with the first call of opd_audit_tensor, or with opd_audit_step: then the values of the watched tensors
   and the state of the default generator are added.
   opd_audit_step: Adds the gradients of the watched tensors, in reverse order, and ends the step.  Call it after
   opd_backward and before the step of the optimizer, or of all optimizers, that are part of this step.
   Both return 0, or -1 and set an error.  If the audit compares, the first difference is an error that names step and
   tensor, and says in which part of the training the runs part.  After an error, the audit can only be ended. */
OPD_NEW int opd_audit_tensor(opd_audit *audit, const char *name, opd_tensor *tensor);
OPD_NEW int opd_audit_step(opd_audit *audit);
/* Adds the values of the watched tensors after the last step, and frees the audit, also on failure.  NULL is allowed.
   A run that is compared may end before that of the file.  Returns 0, or -1 and sets an error: a difference in the last
   values, a file that cannot be written, or an earlier error. */
OPD_NEW int opd_audit_end(opd_audit *audit);
/* Compares two files of audits, from the first step that both have.  Returns 0 if their lines are the same; 1 if the
   runs part, and describes the first difference in text, cut to `cap` bytes; or -1 and sets an error if a file cannot
   be read, is no audit or is cut within a line, or if they have no step in common. */
OPD_NEW int opd_audit_compare(const char *path, const char *other, char *text, size_t cap);
/* Returns attention of texts of different lengths, which lie one after another without padding: softmax(query keyT
   scale) value of each text, [rows, heads, features of value].  query is [rows, heads, features], key and value are
   [keys, heads, features]; heads of query may share heads of key and value.  Text i has the rows offsets_q[i] to
   offsets_q[i + 1] and the keys offsets_k[i] to offsets_k[i + 1]; the offsets are int32 or int64 [texts + 1], begin
   with 0 and end with the number of rows or keys.  A row sees keys from window_left before its position to window_right
   after it; -1: all of them; -1 and 0: causal.  The last row of a text has the position of its last key.  A row that
   sees no key becomes 0.  scale: opd_value_none() for 1 / sqrt(features).  On a GPU, one kernel computes all texts, and
   notes wrong offsets on the GPU as a fault, as for an index that is out of range.  On other devices, in transforms,
   and for other dtypes, or more than 256 features, each text is a call of scaled_dot_product_attention, with its
   derivatives and dtypes; this waits for offsets on a device.  In a trace, offsets are constants, and cannot be inputs
   of the graph.  Returns NULL and sets an error if sizes or offsets do not fit, or if offsets have no data.  The
   innermost scope owns the result.  Any thread may call this.
   Follows torch.nn.attention.varlen.varlen_attn. */
OPD_NEW opd_tensor *opd_varlen_attention(opd_tensor *query, opd_tensor *key, opd_tensor *value, opd_tensor *offsets_q,
                                         opd_tensor *offsets_k, int64_t window_left, int64_t window_right,
                                         opd_value scale);
/* Returns x [..., features] with pairs of features turned by angles (rotary position embedding), in the dtype of x:
   (a, b) becomes (a cos - b sin, a sin + b cos).  cosines and sines are floats [..., half], whose other dims broadcast
   to the ones of x; half is at most half of the features.  interleaved: if true, pair i are the features 2 i
   and 2 i + 1, otherwise i and half + i, for i below half; other features stay as they are.  Computes in float32 (for
   float64: in float64) and rounds once.  On a GPU, one kernel does all the work.  Returns NULL and sets an error if
   dtypes or sizes do not fit.  The innermost scope owns the result.  Any thread may call this.
   Follows apply_rotary_emb of the package flash-attn. */
OPD_NEW opd_tensor *opd_rotary_embedding(opd_tensor *x, opd_tensor *cosines, opd_tensor *sines, bool interleaved);
/* Returns rms_norm(x + residual, normalized_shape, weight, eps), and sets *sum to x + residual, with which a
   transformer goes on; sum may be NULL.  x and residual are floats whose sizes broadcast.  normalized_shape: the sizes
   of the last dims, over which the mean square is taken.  weight: of this shape, or NULL.  eps: opd_value_none() for
   the smallest step of the dtype at 1.  On a GPU, one kernel does all the work, and one kernel the derivative by x and
   residual.  Returns NULL and sets an error, and *sum to NULL, if sizes or dtypes do not fit.  The innermost scope owns
   the results.  Any thread may call this.  Follows torch.nn.functional.rms_norm after torch.add. */
OPD_NEW opd_tensor *opd_add_rms_norm(opd_tensor *x, opd_tensor *residual, opd_ints normalized_shape, opd_tensor *weight,
                                     opd_value eps, opd_tensor **sum);
/* Returns layer_norm(x + residual, normalized_shape, weight, bias, eps), and sets *sum to x + residual; sum may be
   NULL.  x and residual are floats whose sizes broadcast.  normalized_shape: the sizes of the last dims, over which
   mean and variance are taken.  weight and bias: of this shape, or NULL.  On a GPU, one kernel does all the work if no
   derivative is recorded.  Returns NULL and sets an error, and *sum to NULL, if sizes or dtypes do not fit.  The
   innermost scope owns the results.  Any thread may call this.  Follows torch.nn.functional.layer_norm after
   torch.add. */
OPD_NEW opd_tensor *opd_add_layer_norm(opd_tensor *x, opd_tensor *residual, opd_ints normalized_shape,
                                       opd_tensor *weight, opd_tensor *bias, double eps, opd_tensor **sum);

/* Quantising: these functions replace float weights by weights of 8 or 4 bits.  The text `how` says how, in words with
   commas between them:
   "q8_0", "q4_k" and the names of other dtypes in blocks: blocks of GGUF files (opd_quantize_blocks).
   "int8", "int4": integers with a scale for each row of a linear layer's weight, or for each output channel of a
       convolution.  Numbers are symmetric around 0, as MinMaxObserver and PerChannelMinMaxObserver of PyTorch choose
       them with the limits -127 and 127, or -8 and 7.  A number x is stored as round(x * (1 / scale)), half to even.
   "asymmetric": integers also have zero points, and all of -128 to 127 or 0 to 15 is used.
   "group 32": each 32 numbers of a row of a linear layer have their own scale.  Convolutions do not change.
   "dynamic": runs also round the inputs of linear layers to 8 bits, each row (token) with a scale of its own.
   "static": runs also round the inputs of linear layers and convolutions to 8 bits, with scales that are found by
       running the float model with example inputs, the batches.  From these, "minmax" (the default) takes the smallest
       and the largest number, "histogram" the range with the smallest error (HistogramObserver), and "percentile 99.9"
       the range of the 99.9% of the numbers in the middle.
   For example: "int4, group 32, dynamic" or "int8, static, histogram".
   A quantised weight has no gradient; gradients flow through the activations.  The library computes these functions
   without autograd. */

/* A line of the report: what has become of a weight; or the error of an output of a graph, if op is NULL. */
typedef struct opd_quantized {
    const char *name;            /* the name of the weight or of the output */
    const char *op;              /* the operator that uses the weight, such as "aten::linear" */
    const char *form;            /* the form it has now, such as "int8, group 32", or why it stays as it is */
    bool kept;                   /* the weight stays as it is */
    int uses;                    /* the number of calls that use it */
    int64_t bytes_before, bytes_after;
    double weight_mean, weight_max;               /* the mean and the largest difference between the weight and the
                                                     numbers that are stored for it */
    double input_min, input_max;                  /* "static": the range of the layer's inputs, */
    double input_scale;                           /* and the scale and zero point to which runs round them */
    int64_t input_zero_point;
    double output_mean, output_max;               /* the mean and the largest difference between the float layer's
                                                     outputs and this layer's, for the same inputs: the batches.  NaN
                                                     without batches */
    double output_size;                           /* the root of the mean square of the float layer's outputs */
} opd_quantized;
typedef struct opd_quantize_options {
    const char *layers;          /* a pattern (>>api:modules) that selects weights by their names; NULL: all.  If it is
                                    "!lm_head*", the last layer of many language models stays as it is */
    bool (*choose)(void *user, const opd_quantized *weight);
                                 /* returns whether a weight is quantised.  Of weight, name, op, uses and bytes_before
                                    are set.  NULL: all weights are */
    void (*report)(void *user, const opd_quantized *line);
                                 /* called for each weight that a layer uses, also for those that stay as they are, and
                                    then for each output of the graph that has floats, if there are batches.  The texts
                                    live until it returns.  NULL: there is no report */
    void *user;
    const opd_value *const *batches; int nbatches;          /* example inputs, such as opd_program_run takes: batches[i]
                                                               has ninputs values */
    int ninputs;
} opd_quantize_options;
/* Writes a line of the report as text, such as "0.weight aten::linear int8: 4096 -> 1152 bytes, weight off by ...".
   The text is cut to `cap` bytes including the final zero.  Returns the full length. */
OPD_NEW size_t opd_quantized_print(const opd_quantized *line, char *buf, size_t cap);
/* Replaces the parameters of a module that are matrices of floats by tensors in blocks, which linear, embedding and
   products take in their place.  how: the name of a dtype in blocks.  options: NULL means all matrices; batches are not
   used, because a module has no code.  Forward code stays as it is; if it uses a matrix in another way, select the
   others with options->layers.  Fails if a matrix has a gradient, has rows that are not whole blocks, or has a number
   that is not finite.  Tied weights stay tied.  Returns the number of weights that were replaced, or -1 and sets an
   error; then the module stays as it was.  opd_module_save writes a GGUF file if its path ends with ".gguf". */
OPD_NEW int opd_quantize_module(opd_module *module, const char *how, const opd_quantize_options *options);
/* Returns a new graph in which the weights of linear layers and convolutions (linear, mm, addmm, matmul; conv1d to
   conv3d, conv_transpose1d to conv_transpose3d, convolution) are quantised.  graph: its first inputs are the tensors of
   `module`, in this order; other weights are constants of the graph.  module: NULL if all weights are constants.  The
   batches have a tensor for each other input.
   The new graph reads integers with quantized_decomposed::dequantize_per_channel or dequantize_per_channel_group before
   each layer.  int4 is stored as uint8 with two numbers in a byte, the first in the low bits, which bitwise_and,
   bitwise_right_shift, stack and view of aten unpack.  It rounds inputs with quantize_per_token or quantize_per_tensor,
   and the dequantize_ operators.  opd_program_save writes it for PyTorch.
   In the module, the quantised tensors take the place of the float tensors, which the caller may keep.  The graph
   `graph` stays as it was, for use with float tensors.  A weight stays as it is, and the report says why, if another
   node than a layer uses it, if it is not float32, float16 or bfloat16, or if blocks or groups of 4 bits do not fit its
   layer.  Fails if a weight has a gradient; if a group or block does not divide its rows; if a number of a weight or of
   an input is not finite; or if static quantisation has no batches, or they do not reach a layer.  Then returns NULL
   and sets an error, and the module stays as it was. */
OPD_NEW opd_graph *opd_quantize_graph(const opd_graph *graph, opd_module *module, const char *how,
                                      const opd_quantize_options *options);
