//----------------------------------------------------------------------------------------------------------------------
//  >>api:training   optimizers, the gradient scaler, clipping, learning rates
//----------------------------------------------------------------------------------------------------------------------

/* An optimizer holds its parameters (leaves) and their state, in groups with options of their own: one group to begin
   with, in which parameters count from 0; those of further groups count on.  One thread at a time. */
typedef struct opd_optimizer opd_optimizer;
typedef struct opd_sgd_options {
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize;
} opd_sgd_options;
typedef struct opd_adam_options {
    double lr, beta1, beta2, eps, weight_decay;
    bool amsgrad, maximize;
} opd_adam_options;
OPD_API opd_sgd_options opd_sgd_defaults(void);      /* lr 1e-3, all else 0 */
OPD_API opd_adam_options opd_adam_defaults(void);    /* lr 1e-3, betas 0.9 and 0.999, eps 1e-8 */
OPD_API opd_adam_options opd_adamw_defaults(void);   /* the same with weight_decay 0.01 */
/* torch.optim.SGD, Adam, AdamW (fused).  options NULL: the defaults.  NULL with an error. */
OPD_API opd_optimizer *opd_sgd_new(opd_tensor *const *params, int count, const opd_sgd_options *options);
OPD_API opd_optimizer *opd_adam_new(opd_tensor *const *params, int count, const opd_adam_options *options);
OPD_API opd_optimizer *opd_adamw_new(opd_tensor *const *params, int count, const opd_adam_options *options);
/* One more group, of parameters that no group has, with the options of the first; or (move) of parameters that the
   optimizer has, which go there with their state, and with the options of the group that the first of them was in.
   The number of the group, or -1 with an error and nothing changed. */
OPD_API int opd_optimizer_add_group(opd_optimizer *optimizer, opd_tensor *const *params, int count);
OPD_API int opd_optimizer_move_group(opd_optimizer *optimizer, opd_tensor *const *params, int count);
OPD_API int opd_optimizer_groups(const opd_optimizer *optimizer);             /* how many; 0 for NULL */
OPD_API int opd_optimizer_group_size(const opd_optimizer *optimizer, int group);
/* An option of a group: "lr", "weight_decay", "maximize"; "momentum", "dampening", "nesterov" of SGD; "beta1", "beta2",
   "eps", "amsgrad" of Adam; of what is yes or no 1 or 0.  NaN, or -1 with nothing changed, with an error. */
OPD_API double opd_optimizer_option(const opd_optimizer *optimizer, int group, const char *name);
OPD_API int opd_optimizer_set_option(opd_optimizer *optimizer, int group, const char *name, double value);
/* "SGD", "Adam" or "AdamW". */
OPD_API const char *opd_optimizer_name(const opd_optimizer *optimizer);
/* Parameter i, borrowed; NULL beyond the last. */
OPD_API opd_tensor *opd_optimizer_param(const opd_optimizer *optimizer, int i);
/* One step by the gradients that are there; parameters without one stay as they are.  0, or -1 with nothing changed in
   the group that it is about and those behind it. */
OPD_API int opd_optimizer_step(opd_optimizer *optimizer);
/* Takes the gradients of its parameters away (set_to_none). */
OPD_API int opd_optimizer_zero_grad(opd_optimizer *optimizer);
/* The learning rate of the first group; set: of all. */
OPD_API double opd_optimizer_lr(const opd_optimizer *optimizer);
OPD_API int opd_optimizer_set_lr(opd_optimizer *optimizer, double lr);
/* State of parameter i: "momentum_buffer"; "step" (of no dimensions), "exp_avg", "exp_avg_sq", "max_exp_avg_sq".
   Borrowed; NULL where there is none (yet: it comes with the first step). */
OPD_API opd_tensor *opd_optimizer_state(const opd_optimizer *optimizer, int i, const char *name);
/* Takes a saved one over, by a copy: the optimizer goes on where the other one was.  forget takes all of parameter i's
   state away: as before its first step.  0, or -1 with an error. */
OPD_API int opd_optimizer_set_state(opd_optimizer *optimizer, int i, const char *name, const opd_tensor *value);
OPD_API int opd_optimizer_forget(opd_optimizer *optimizer, int i);
/* Lets go of parameters and state; NULL: nothing. */
OPD_API void opd_optimizer_free(opd_optimizer *optimizer);

/* torch.amp.GradScaler, against gradients that vanish in float16: the loss is multiplied by a scale before backward,
   the gradients are divided by it before the step, which is left out when one is not finite; update then lowers the
   scale, and raises it after growth_interval good steps.  A round is
       opd_backward(opd_scaler_scale(s, loss)); opd_scaler_step(s, optimizer); opd_scaler_update(s);
   with opd_scaler_unscale before the step for what looks at gradients (clipping).  One thread at a time. */
typedef struct opd_scaler opd_scaler;
typedef struct opd_scaler_options {
    double init_scale, growth_factor, backoff_factor;
    int64_t growth_interval;
    bool enabled;                /* false: everything passes as it is, the scale is 1 */
} opd_scaler_options;
OPD_API opd_scaler_options opd_scaler_defaults(void);         /* 65536, 2, 0.5, 2000, true */
OPD_API opd_scaler *opd_scaler_new(const opd_scaler_options *options);    /* NULL: the defaults.  NULL with an error */
OPD_API void opd_scaler_free(opd_scaler *scaler);
OPD_API opd_tensor *opd_scaler_scale(opd_scaler *scaler, opd_tensor *tensor);  /* t times the scale, differentiably */
/* Divides the gradients of an optimizer's parameters, once between updates; float16 ones are an error.  0, or -1. */
OPD_API int opd_scaler_unscale(opd_scaler *scaler, opd_optimizer *optimizer);
/* Unscales, unless that was done, and steps.  0; 1: the step was left out; -1 with an error. */
OPD_API int opd_scaler_step(opd_scaler *scaler, opd_optimizer *optimizer);
/* Ends a round.  new_scale > 0 sets the scale; 0: by what was found.  0, or -1 with an error. */
OPD_API int opd_scaler_update(opd_scaler *scaler, double new_scale);
/* What a checkpoint keeps (state_dict), and the setters of factors and interval; growth_tracker counts good steps. */
typedef struct opd_scaler_state {
    double scale, growth_factor, backoff_factor;
    int64_t growth_interval, growth_tracker;
} opd_scaler_state;
OPD_API opd_scaler_state opd_scaler_get(const opd_scaler *scaler);
OPD_API int opd_scaler_set(opd_scaler *scaler, opd_scaler_state state);       /* 0, or -1 with nothing changed */

/* torch.nn.utils.clip_grad_norm_: scales the gradients of params so that the norm of all of them together is at most
   max_norm; norm_type 2, any other order, infinity.  Returns the norm before (0 dims; of the innermost scope), NULL
   with an error; error_if_nonfinite: an infinite or NaN norm is one, and nothing is scaled. */
OPD_API opd_tensor *opd_clip_grad_norm(opd_tensor *const *params, int count, double max_norm, double norm_type,
                                       bool error_if_nonfinite);
/* torch.nn.utils.clip_grad_value_: every element into [-clip_value, clip_value]. */
OPD_API int opd_clip_grad_value(opd_tensor *const *params, int count, double clip_value);

/* Learning rates of torch.optim.lr_scheduler at an epoch (or step) that counts from 0, where lr is the first one:
   `opd_optimizer_set_lr(o, opd_lr_cosine(0.1, epoch, 30, 0))`.  Bad numbers: NaN with an error. */
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
/* pct_start 0.3, div_factor 25, final_div_factor 1e4, cosine, two phases */
OPD_API opd_one_cycle opd_one_cycle_defaults(double max_lr, int64_t total_steps);
OPD_API double opd_lr_one_cycle(int64_t step, const opd_one_cycle *cycle);

