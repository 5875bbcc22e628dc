//----------------------------------------------------------------------------------------------------------------------
//  >>api:modules    modules: named parameters and buffers, loading, saving; initialisers (may change)
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
/* Writes parameters and buffers to a file.  If path ends with .safetensors, that format is used, else the format of
   torch.save(state_dict).  A tensor with several names is written once.  In a checkpoint, the names share a storage.  A
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

