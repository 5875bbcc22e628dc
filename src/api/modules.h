//----------------------------------------------------------------------------------------------------------------------
//  >>api:modules    named parameters and buffers: filled, saved, trained; initialisers
//----------------------------------------------------------------------------------------------------------------------

/* A collection of tensors under dotted names ("0.weight"), in the order in which they were added: what a network has
   besides its formula, and what files of weights, exported programs and optimizers are about.  One thread at a time
   while it changes, any number that read. */
typedef struct opd_module opd_module;
typedef enum opd_module_kind {
    OPD_MODULE_PARAMETER,        /* trained: a leaf */
    OPD_MODULE_BUFFER,           /* saved with the parameters, not trained: running means */
    OPD_MODULE_CONSTANT          /* neither: what is computed or comes with the program */
} opd_module_kind;
OPD_API opd_module *opd_module_new(void);                                     /* empty; NULL with an error */
OPD_API opd_module *opd_module_keep(opd_module *module);                      /* one owner more; returns module */
OPD_API void opd_module_free(opd_module *module);                             /* one owner less; NULL: nothing */
/* Adds a tensor, which the module holds, at the end; requires_grad stays as it is.  set puts another one in its place.
   0, or -1 with an error: the name is taken, is none (set), or is empty; a parameter is no leaf. */
OPD_API int opd_module_add(opd_module *module, const char *name, opd_tensor *tensor, opd_module_kind kind);
OPD_API int opd_module_set(opd_module *module, const char *name, opd_tensor *tensor);
/* The tensor of that name, borrowed; NULL with an error that names it when there is none. */
OPD_API opd_tensor *opd_module_get(const opd_module *module, const char *name);
/* The index of that name; -1, without an error: there is none. */
OPD_API int64_t opd_module_find(const opd_module *module, const char *name);
OPD_API int64_t opd_module_count(const opd_module *module);
/* Name, tensor (borrowed) and kind of the i-th; beyond the last NULL, NULL and OPD_MODULE_CONSTANT. */
OPD_API const char *opd_module_name(const opd_module *module, int64_t i);
OPD_API opd_tensor *opd_module_at(const opd_module *module, int64_t i);
OPD_API opd_module_kind opd_module_kind_at(const opd_module *module, int64_t i);

/* Patterns choose names: '*' stands for any characters, '?' for one, a '!' in front for all names that do not match;
   NULL for all.  A tensor that has two names counts once.  Functions that change what a pattern chooses return how
   many, or -1 with an error; a pattern that matches nothing is one. */
/* Writes parameters of floating dtypes into tensors, as many as fit in `cap` (borrowed); returns how many there are. */
OPD_API int opd_module_parameters(const opd_module *module, const char *pattern, opd_tensor **tensors, int cap);
OPD_API int64_t opd_module_numel(const opd_module *module, const char *pattern);   /* numbers in parameters */
OPD_API int opd_module_set_requires_grad(opd_module *module, const char *pattern, bool on);
OPD_API int opd_module_zero_grad(opd_module *module);                         /* takes all gradients away */
/* Module.to: all tensors go to device (NULL: stay where they are), floating ones become dtype (OPD_DTYPE_NONE: stay as
   they are).  They stay the same tensors, so that an optimizer goes on with them; state that it has does not move. */
OPD_API int opd_module_to(opd_module *module, const opd_device *device, opd_scalar_type dtype);
/* An optimizer of the parameters that a pattern chooses: opd_adam_new and its like, of them.  opd_module_group makes
   those that pattern chooses of the optimizer's a group of their own; returns its number, or -1 with an error:
       opd_optimizer *adam = opd_module_adamw(module, NULL, NULL);
       opd_optimizer_set_option(adam, opd_module_group(module, adam, "*.bias"), "weight_decay", 0); */
OPD_API opd_optimizer *opd_module_sgd(const opd_module *module, const char *pattern, const opd_sgd_options *options);
OPD_API opd_optimizer *opd_module_adam(const opd_module *module, const char *pattern, const opd_adam_options *options);
OPD_API opd_optimizer *opd_module_adamw(const opd_module *module, const char *pattern, const opd_adam_options *options);
OPD_API int opd_module_group(const opd_module *module, opd_optimizer *optimizer, const char *pattern);

/* Makes a module of a file's tensors (>>api:exchange): those whose names begin with prefix (NULL: all), without it.
   Parameters are those that required grad; where none did, as in a state dict, those of floating dtypes that are no
   running_mean or running_var.  They require grad.  The tensors lie in the mapped file, which is never written.
   Names whose tensors have one storage, offset, sizes, strides and dtype in a checkpoint, as tied weights have, get one
   tensor.  So do the names in the metadata of a .safetensors file that say which tensor they stand for.  An object of a
   class that is not read is left out; one with tensors in it is an error. */
OPD_API opd_module *opd_module_open(const char *path, const char *prefix);
/* Copies a file's tensors into those of the module, by name, as load_state_dict does: any dtype into any.  Constants
   are not looked for.  A tensor that has several names in the module is not missing if the file has one of them.  0, or
   -1 with an error that names what does not fit and nothing changed. */
typedef enum opd_module_match {
    OPD_MODULE_COPIED, OPD_MODULE_MISSING, OPD_MODULE_UNEXPECTED, OPD_MODULE_MIS_SIZED
} opd_module_match;
typedef struct opd_module_load_options {
    const char *strip;           /* of the file only names that begin with this, without it: "model/" */
    const char *add;             /* and then with this in front: "encoder." */
    bool lenient;                /* names that are missing or unexpected are no error, */
    bool skip_sizes;             /* nor are other sizes: such a tensor stays as it is */
    void (*report)(opd_module_match match, const char *name, void *user);   /* is told of each name, or NULL */
    void *user;
} opd_module_load_options;
OPD_API int opd_module_load(opd_module *module, const opd_tensor_file *file, const opd_module_load_options *options);
/* Writes parameters and buffers: where path ends with .safetensors such a file, else as torch.save(state_dict).  A
   tensor of several names is written once: in a checkpoint they share a storage; a .safetensors file has it under the
   first name, and its metadata has {other name: first name}, as safetensors.torch.save_model writes and load_model
   reads it. */
OPD_API int opd_module_save(const opd_module *module, const char *path);
/* Writes a whole training: {"model": state dict, "optimizer": optimizer.state_dict() as PyTorch has it, and `count`
   values under paths} (opd_checkpoint_file_save; module or optimizer may be NULL).  In a .safetensors file numbers are
   tensors of no dimensions, and texts are metadata.  load puts model and optimizer back, which go on to the bit, from
   such a file or from PyTorch's torch.save({"model": ..., "optimizer": ...}); opd_optimizer_load only the optimizer,
   from names that begin with prefix ("optimizer/").  Groups must be of the same sizes.  0, or -1 with an error and
   nothing changed. */
OPD_API int opd_training_save(const char *path, const opd_module *module, const opd_optimizer *optimizer,
                              const char *const *names, const opd_value *values, int64_t count);
OPD_API int opd_training_load(const opd_tensor_file *file, opd_module *module, opd_optimizer *optimizer);
OPD_API int opd_optimizer_load(opd_optimizer *optimizer, const opd_tensor_file *file, const char *prefix);

/* torch.nn.init: fill tensor, also one that requires grad, and return it; NULL with an error.  Fans are those of a
   linear or convolution weight [out, in, ...]; nonlinearity: "linear", "sigmoid", "tanh", "relu", "leaky_relu" (param
   is its slope; NaN: 0.01), "selu", "conv2d" and its like. */
OPD_API double opd_init_calculate_gain(const char *nonlinearity, double param);     /* NaN with an error */
/* fan_in, fan_out: NULL where it is not wanted.  0, or -1 with an error. */
OPD_API int opd_init_fans(const opd_tensor *tensor, int64_t *fan_in, int64_t *fan_out);
OPD_API opd_tensor *opd_init_uniform_(opd_tensor *tensor, double from, double to);
OPD_API opd_tensor *opd_init_normal_(opd_tensor *tensor, double mean, double std);
OPD_API opd_tensor *opd_init_trunc_normal_(opd_tensor *tensor, double mean, double std, double from, double to);
OPD_API opd_tensor *opd_init_constant_(opd_tensor *tensor, double value);
OPD_API opd_tensor *opd_init_ones_(opd_tensor *tensor);
OPD_API opd_tensor *opd_init_zeros_(opd_tensor *tensor);
OPD_API opd_tensor *opd_init_eye_(opd_tensor *tensor);
OPD_API opd_tensor *opd_init_dirac_(opd_tensor *tensor, int64_t groups);
OPD_API opd_tensor *opd_init_xavier_uniform_(opd_tensor *tensor, double gain);
OPD_API opd_tensor *opd_init_xavier_normal_(opd_tensor *tensor, double gain);
OPD_API opd_tensor *opd_init_kaiming_uniform_(opd_tensor *tensor, double param, bool fan_out, const char *nonlinearity);
OPD_API opd_tensor *opd_init_kaiming_normal_(opd_tensor *tensor, double param, bool fan_out, const char *nonlinearity);
OPD_API opd_tensor *opd_init_orthogonal_(opd_tensor *tensor, double gain);
OPD_API opd_tensor *opd_init_sparse_(opd_tensor *tensor, double sparsity, double std);

