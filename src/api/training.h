//----------------------------------------------------------------------------------------------------------------------
//  >>api:training   optimizers, the gradient scaler, clipping, learning rates
//----------------------------------------------------------------------------------------------------------------------

/* An optimizer holds its parameters (leaves) and their state, in groups with separate options.  At first there is one
   group.  Parameters are numbered from 0, group after group.  Only one thread at a time may use an optimizer. */
typedef struct opd_optimizer opd_optimizer;
typedef struct opd_sgd_options {
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize;
} opd_sgd_options;
typedef struct opd_adam_options {
    double lr, beta1, beta2, eps, weight_decay;
    bool amsgrad, maximize;
} opd_adam_options;
OPD_API opd_sgd_options opd_sgd_defaults(void);      /* lr 1e-3, all others 0 */
OPD_API opd_adam_options opd_adam_defaults(void);    /* lr 1e-3, betas 0.9 and 0.999, eps 1e-8 */
OPD_API opd_adam_options opd_adamw_defaults(void);   /* as opd_adam_defaults, with weight_decay 0.01 */
/* Create an optimizer of params[count], like torch.optim.SGD, Adam and AdamW (fused).  Complex parameters are trained
   as pairs of real numbers; their states are complex, as in torch.optim.  If options is NULL, the defaults are used.
   On failure, return NULL and set an error. */
OPD_API opd_optimizer *opd_sgd_new(opd_tensor *const *params, int count, const opd_sgd_options *options);
OPD_API opd_optimizer *opd_adam_new(opd_tensor *const *params, int count, const opd_adam_options *options);
OPD_API opd_optimizer *opd_adamw_new(opd_tensor *const *params, int count, const opd_adam_options *options);
/* opd_optimizer_add_group: Adds a group of parameters that are in no group yet, with the options of the first group.
   opd_optimizer_move_group: Moves parameters of the optimizer, with their state, into a new group.  The new group has
   the options of the group that the first parameter was in.
   Both return the number of the new group, or -1 and set an error, with nothing changed. */
OPD_API int opd_optimizer_add_group(opd_optimizer *optimizer, opd_tensor *const *params, int count);
OPD_API int opd_optimizer_move_group(opd_optimizer *optimizer, opd_tensor *const *params, int count);
OPD_API int opd_optimizer_groups(const opd_optimizer *optimizer);             /* number of groups; 0 for NULL */
OPD_API int opd_optimizer_group_size(const opd_optimizer *optimizer, int group);
/* opd_optimizer_option: Returns an option of a group, or NaN and sets an error.
   opd_optimizer_set_option: Sets an option.  Returns 0, or -1 and sets an error, with nothing changed.
   name: "lr", "weight_decay", "maximize"; for SGD "momentum", "dampening", "nesterov"; for Adam "beta1", "beta2",
   "eps", "amsgrad".  A bool option is 1 or 0. */
OPD_API double opd_optimizer_option(const opd_optimizer *optimizer, int group, const char *name);
OPD_API int opd_optimizer_set_option(opd_optimizer *optimizer, int group, const char *name, double value);
/* Returns "SGD", "Adam" or "AdamW". */
OPD_API const char *opd_optimizer_name(const opd_optimizer *optimizer);
/* Returns parameter i, borrowed.  Returns NULL beyond the last. */
OPD_API opd_tensor *opd_optimizer_param(const opd_optimizer *optimizer, int i);
/* Takes one step with the current gradients.  Parameters without a gradient do not change.  Returns 0, or -1 and sets
   an error.  On failure, the group with the error and the groups after it are not changed. */
OPD_API int opd_optimizer_step(opd_optimizer *optimizer);
/* Removes the gradients of all parameters (zero_grad with set_to_none).  Returns 0, or -1 and sets an error. */
OPD_API int opd_optimizer_zero_grad(opd_optimizer *optimizer);
/* opd_optimizer_lr returns the learning rate of the first group.  opd_optimizer_set_lr sets it for all groups. */
OPD_API double opd_optimizer_lr(const opd_optimizer *optimizer);
OPD_API int opd_optimizer_set_lr(opd_optimizer *optimizer, double lr);
/* Returns a state tensor of parameter i, borrowed.  name: "momentum_buffer" for SGD; for Adam "step" (of no
   dimensions), "exp_avg", "exp_avg_sq", "max_exp_avg_sq".  Returns NULL if there is no such state.  The first step
   creates states. */
OPD_API opd_tensor *opd_optimizer_state(const opd_optimizer *optimizer, int i, const char *name);
/* opd_optimizer_set_state: Copies a saved state tensor into the optimizer, which continues from there.
   opd_optimizer_forget: Removes all state of parameter i, as before its first step.
   Both return 0, or -1 and set an error. */
OPD_API int opd_optimizer_set_state(opd_optimizer *optimizer, int i, const char *name, const opd_tensor *value);
OPD_API int opd_optimizer_forget(opd_optimizer *optimizer, int i);
/* Frees an optimizer and releases its parameters and state.  NULL is allowed. */
OPD_API void opd_optimizer_free(opd_optimizer *optimizer);

/* Scales the loss so that float16 gradients do not vanish (torch.amp.GradScaler).  The loss is multiplied by a scale
   before backward.  The gradients are divided by the scale before the step.  The step is skipped if a gradient is not
   finite.  The update then lowers the scale, or raises it after growth_interval good steps.  One round is
       opd_backward(opd_scaler_scale(s, loss)); opd_scaler_step(s, optimizer); opd_scaler_update(s, 0);
   If code between backward and the step reads the gradients, such as clipping, call opd_scaler_unscale first.  Only one
   thread at a time may use a scaler. */
typedef struct opd_scaler opd_scaler;
typedef struct opd_scaler_options {
    double init_scale, growth_factor, backoff_factor;
    int64_t growth_interval;
    bool enabled;                /* false: nothing is scaled, and the scale is 1 */
} opd_scaler_options;
OPD_API opd_scaler_options opd_scaler_defaults(void);         /* the fields in order: 65536, 2, 0.5, 2000, true */
OPD_API opd_scaler *opd_scaler_new(const opd_scaler_options *options);    /* returns NULL and sets an error on failure;
                                                                             if options is NULL, defaults are used */
OPD_API void opd_scaler_free(opd_scaler *scaler);
OPD_API opd_tensor *opd_scaler_scale(opd_scaler *scaler, opd_tensor *tensor);  /* tensor * scale, differentiably */
/* Divides the gradients of an optimizer's parameters by the scale.  At most one call per optimizer is allowed between
   two calls of opd_scaler_update.  A float16 gradient is an error.  Returns 0, or -1 and sets an error. */
OPD_API int opd_scaler_unscale(opd_scaler *scaler, opd_optimizer *optimizer);
/* Unscales the gradients, unless that was done, and takes a step of the optimizer.  Returns 0, 1 if the step was
   skipped, or -1 and sets an error. */
OPD_API int opd_scaler_step(opd_scaler *scaler, opd_optimizer *optimizer);
/* Ends a round.  If new_scale > 0, sets the scale to it.  If new_scale is 0, adapts the scale to the gradients of the
   round.  Returns 0, or -1 and sets an error. */
OPD_API int opd_scaler_update(opd_scaler *scaler, double new_scale);
/* The state of a scaler, for saving a scaler in a checkpoint and restoring it (state_dict), and for changing its
   factors and interval.  growth_tracker counts the good steps since the last skipped step or growth of the scale. */
typedef struct opd_scaler_state {
    double scale, growth_factor, backoff_factor;
    int64_t growth_interval, growth_tracker;
} opd_scaler_state;
OPD_API opd_scaler_state opd_scaler_get(const opd_scaler *scaler);
OPD_API int opd_scaler_set(opd_scaler *scaler, opd_scaler_state state);       /* returns 0, or -1 with nothing
                                                                                 changed */

/* Scales the gradients of params[count] so that the norm of all of them together is at most max_norm
   (torch.nn.utils.clip_grad_norm_).  norm_type is the order of the norm: 2, another number, or infinity.  Returns the
   norm before scaling (a 0-dim tensor of the innermost scope), or NULL and sets an error.  With error_if_nonfinite,
   the call fails if the norm is infinite or NaN, and nothing is scaled. */
OPD_API opd_tensor *opd_clip_grad_norm(opd_tensor *const *params, int count, double max_norm, double norm_type,
                                       bool error_if_nonfinite);
/* Limits every element of the gradients to [-clip_value, clip_value] (torch.nn.utils.clip_grad_value_).  Returns 0, or
   -1 and sets an error. */
OPD_API int opd_clip_grad_value(opd_tensor *const *params, int count, double clip_value);

/* Return learning rates as in torch.optim.lr_scheduler.  lr is the initial learning rate.  epoch and step are counted
   from 0.  Example: `opd_optimizer_set_lr(o, opd_lr_cosine(0.1, epoch, 30, 0))`.  For invalid numbers, return NaN and
   set an error. */
OPD_API double opd_lr_step(double lr, int64_t epoch, int64_t step_size, double gamma);
OPD_API double opd_lr_multi_step(double lr, int64_t epoch, opd_ints milestones, double gamma);
OPD_API double opd_lr_exponential(double lr, int64_t epoch, double gamma);
OPD_API double opd_lr_linear(double lr, int64_t epoch, double start_factor, double end_factor, int64_t total_iters);
OPD_API double opd_lr_cosine(double lr, int64_t epoch, int64_t t_max, double eta_min);
OPD_API double opd_lr_cosine_restarts(double lr, int64_t epoch, int64_t t_0, int64_t t_mult, double eta_min);
typedef struct opd_one_cycle {
    double max_lr, pct_start, div_factor, final_div_factor;
    int64_t total_steps;
    bool linear, three_phase;
} opd_one_cycle;
/* Returns pct_start 0.3, div_factor 25, final_div_factor 1e4, cosine (linear is false), and two phases. */
OPD_API opd_one_cycle opd_one_cycle_defaults(double max_lr, int64_t total_steps);
/* Returns the learning rate of a step, as in torch.optim.lr_scheduler.OneCycleLR. */
OPD_API double opd_lr_one_cycle(int64_t step, const opd_one_cycle *cycle);

