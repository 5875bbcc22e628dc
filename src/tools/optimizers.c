#include "tools.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>training     optimizers, the gradient scaler, clipping, learning rates
//
//  An optimizer owns references to parameters and their states; the steps are operators (>>op:train).  This section
//  uses public functions and the tensors' gradients.  It follows torch/optim, torch/nn/utils/clip_grad.py and
//  torch/optim/lr_scheduler.py.
//----------------------------------------------------------------------------------------------------------------------

//== optimizers ========================================================================================================

enum { OPDI_SGD, OPDI_ADAM, OPDI_ADAMW };
#define OPDI_STATES 4
static const char *const opdi_state_names[2][OPDI_STATES] = {{"momentum_buffer", NULL, NULL, NULL},
                                                             {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"}};
static opd_tensor **opdi_state_of(const opd_optimizer *optimizer, int element, int i) {
    return &optimizer->params[(size_t)((element + 1) * optimizer->count + i)];
}

opd_sgd_options opd_sgd_defaults(void) {
    opd_sgd_options options;
    memset(&options, 0, sizeof options);
    options.lr = 1e-3;
    return options;
}
opd_adam_options opd_adam_defaults(void) {
    opd_adam_options options;
    memset(&options, 0, sizeof options);
    options.lr = 1e-3;
    options.beta1 = 0.9;
    options.beta2 = 0.999;
    options.eps = 1e-8;
    return options;
}
opd_adam_options opd_adamw_defaults(void) {
    opd_adam_options options = opd_adam_defaults();
    options.weight_decay = 1e-2;
    return options;
}

static int opdi_optimizer_number(bool right, const char *what, double value) {
    return right ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "Invalid %s: %g", what, value);
}
static int opdi_sgd_check(const opd_sgd_options *options) {
    if (opdi_optimizer_number(options->lr >= 0, "learning rate", options->lr) ||
        opdi_optimizer_number(options->momentum >= 0, "momentum value", options->momentum) ||
        opdi_optimizer_number(options->weight_decay >= 0, "weight_decay value", options->weight_decay)) { return -1; }
    if (options->nesterov && (options->momentum <= 0 || options->dampening > 0 || options->dampening < 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Nesterov momentum requires a momentum and zero dampening");
    }
    return 0;
}
static int opdi_adam_check(const opd_adam_options *options) {
    return opdi_optimizer_number(options->lr >= 0, "learning rate", options->lr) ||
        opdi_optimizer_number(options->eps >= 0, "epsilon value", options->eps) ||
        opdi_optimizer_number(options->beta1 >= 0 && options->beta1 < 1, "beta parameter at index 0", options->beta1) ||
        opdi_optimizer_number(options->beta2 >= 0 && options->beta2 < 1, "beta parameter at index 1", options->beta2) ||
        opdi_optimizer_number(options->weight_decay >= 0, "weight_decay value", options->weight_decay) ? -1 : 0;
}

/* Warns if a parameter is in the list twice.  Returns 0, or -1 and sets an error if memory runs out. */
static int opdi_optimizer_twice(opd_tensor *const *params, int count) {
    opdi_pointer_set found;
    int i;
    memset(&found, 0, sizeof found);
    for (i = 0; i < count && found.count == i; i++) {
        if (opdi_pointer_set_add(&found, (uintptr_t)params[i]) < 0) { break; }
    }
    if (found.count < count && opd_ok()) {
        opd_warn("optimizer contains a parameter group with duplicate parameters (number %d)", i - 1);
    }
    opdi_pointer_set_free(&found);
    return opd_ok() ? 0 : -1;
}
static uint64_t opdi_optimizers;                  /* number of optimizers made so far */
/* Returns a new optimizer of `count` parameters, to which it holds references.  `sgd` or `adam`, as `kind` says, has
   the options.  Returns NULL and sets an error if an option or a parameter is invalid. */
static opd_optimizer *opdi_optimizer_make(int kind, opd_tensor *const *params, int count, const opd_sgd_options *sgd,
                                          const opd_adam_options *adam) {
    opd_optimizer *optimizer;
    if (!opd_ok() || (sgd && opdi_sgd_check(sgd)) || (adam && opdi_adam_check(adam))) { return NULL; }
    if (count <= 0 || !params) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "optimizer got an empty parameter list");
        return NULL;
    }
    if (opdi_any_dead(params, count, "optimizer")) { return NULL; }
    for (int i = 0; i < count; i++) {
        const opd_tensor *tensor = params[i];
        if (!tensor || (!opd_dtype_is_floating((opd_scalar_type)tensor->dtype) && !opdi_is_complex(tensor))) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "optimizer: parameter %d is %s", i,
                           tensor ? "not floating point or complex" : "NULL");
            return NULL;
        }
        if (tensor->grad_fn) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "can't optimize a non-leaf Tensor");
            return NULL;
        }
    }
    if (opdi_optimizer_twice(params, count)) { return NULL; }
    size_t bytes = sizeof *optimizer + (size_t)count * ((3 + 2 * OPDI_STATES) * sizeof(opd_tensor *) + sizeof(bool));
    if (!(optimizer = (opd_optimizer *)opdi_alloc(bytes))) { return NULL; }
    memset(optimizer, 0, bytes);
    optimizer->refs = 1;
    optimizer->kind = kind;
    optimizer->count = count;
    optimizer->number = OPDI_ADD(&opdi_optimizers, 1);
    if (sgd) { optimizer->sgd = *sgd; }
    if (adam) { optimizer->adam = *adam; }
    optimizer->params = (opd_tensor **)(void *)(optimizer + 1);
    optimizer->lists = optimizer->params + (size_t)count * (1 + OPDI_STATES);
    optimizer->begun = (bool *)(void *)(optimizer->lists + (size_t)count * (2 + OPDI_STATES));
    optimizer->bytes = bytes;
    for (int i = 0; i < count; i++) { optimizer->params[i] = opdi_keep(params[i]); }
    return optimizer;
}
opd_optimizer *opd_sgd_new(opd_tensor *const *params, int count, const opd_sgd_options *options) {
    const opd_sgd_options defaults = opd_sgd_defaults();
    OPDI_NEEDS(_fused_sgd_);
    return opdi_optimizer_make(OPDI_SGD, params, count, options ? options : &defaults, NULL);
}
opd_optimizer *opd_adam_new(opd_tensor *const *params, int count, const opd_adam_options *options) {
    const opd_adam_options defaults = opd_adam_defaults();
    OPDI_NEEDS(_fused_adam_);
    return opdi_optimizer_make(OPDI_ADAM, params, count, NULL, options ? options : &defaults);
}
opd_optimizer *opd_adamw_new(opd_tensor *const *params, int count, const opd_adam_options *options) {
    const opd_adam_options defaults = opd_adamw_defaults();
    OPDI_NEEDS(_fused_adamw_);
    return opdi_optimizer_make(OPDI_ADAMW, params, count, NULL, options ? options : &defaults);
}
void opd_optimizer_free(opd_optimizer *optimizer) {
    if (!optimizer || opdi_ref_down(&optimizer->refs)) { return; }
    while (optimizer) {
        opd_optimizer *const next = optimizer->next;
        for (int i = 0; i < optimizer->count * (1 + OPDI_STATES); i++) { opdi_release(optimizer->params[i]); }
        opdi_free(optimizer, optimizer->bytes);
        optimizer = next;
    }
}

OPDI_INTERNAL int opdi_null_optimizer(const opd_optimizer *optimizer, const char *function) {
    return optimizer ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s: the optimizer is NULL", function);
}
double opd_optimizer_lr(const opd_optimizer *optimizer) {
    return opdi_null_optimizer(optimizer, "opd_optimizer_lr") ? 0 : optimizer->kind == OPDI_SGD ? optimizer->sgd.lr
        : optimizer->adam.lr;
}
int opd_optimizer_set_lr(opd_optimizer *optimizer, double lr) {
    if (!opd_ok() || opdi_null_optimizer(optimizer, "opd_optimizer_set_lr") ||
        opdi_optimizer_number(lr >= 0, "learning rate", lr)) { return -1; }
    for (; optimizer; optimizer = optimizer->next) { optimizer->sgd.lr = optimizer->adam.lr = lr; }
    return 0;
}
int opd_optimizer_zero_grad(opd_optimizer *optimizer) {
    if (!opd_ok() || opdi_null_optimizer(optimizer, "opd_optimizer_zero_grad")) { return -1; }
    for (; optimizer; optimizer = optimizer->next) {
        for (int i = 0; i < optimizer->count; i++) {
            if (opd_tensor_set_grad(optimizer->params[i], NULL)) { return -1; }
        }
    }
    return 0;
}

/* Returns group number `group`, or NULL and sets an error. */
static const opd_optimizer *opdi_group_at(const opd_optimizer *optimizer, int group, const char *function) {
    if (opdi_null_optimizer(optimizer, function)) { return NULL; }
    const int groups = opd_optimizer_groups(optimizer);
    for (int i = 0; optimizer && i < group; i++) { optimizer = optimizer->next; }
    if (group >= 0 && optimizer) { return optimizer; }
    (void)opd_fail(OPD_ERROR_INDEX, "%s: there is no group %d: the optimizer has %d group(s)", function, group, groups);
    return NULL;
}
/* Returns the group of parameter number *i, or NULL if there is no such parameter.  Sets *i to the parameter's
   number within the group. */
static const opd_optimizer *opdi_group_of(const opd_optimizer *optimizer, int *i) {
    for (; optimizer && *i >= optimizer->count; optimizer = optimizer->next) { *i -= optimizer->count; }
    return *i < 0 ? NULL : optimizer;
}
/* Returns the number of `param` within the group, or -1 if the group does not have it. */
static int opdi_group_find(const opd_optimizer *group, const opd_tensor *param) {
    for (int i = 0; i < group->count; i++) { if (group->params[i] == param) { return i; } }
    return -1;
}
int opd_optimizer_groups(const opd_optimizer *optimizer) {
    int groups = 0;
    for (; optimizer; optimizer = optimizer->next) { groups++; }
    return groups;
}
int opd_optimizer_group_size(const opd_optimizer *optimizer, int group) {
    const opd_optimizer *const its = opdi_group_at(optimizer, group, "opd_optimizer_group_size");
    return its ? its->count : -1;
}
const char *opd_optimizer_name(const opd_optimizer *optimizer) {
    static const char *const names[] = {"SGD", "Adam", "AdamW"};
    return opdi_null_optimizer(optimizer, "opd_optimizer_name") ? NULL : names[optimizer->kind];
}
opd_tensor *opd_optimizer_param(const opd_optimizer *optimizer, int i) {
    const opd_optimizer *const group = opdi_group_of(optimizer, &i);
    return group ? group->params[i] : NULL;
}
/* Appends `group` to the optimizer's groups.  Returns the number of the group. */
static int opdi_group_append(opd_optimizer *optimizer, opd_optimizer *group) {
    int number = 1;
    for (; optimizer->next; optimizer = optimizer->next) { number++; }
    optimizer->next = group;
    return number;
}
static opd_optimizer *opdi_group_like(const opd_optimizer *group, opd_tensor *const *params, int count) {
    return group->kind == OPDI_SGD ? opdi_optimizer_make(group->kind, params, count, &group->sgd, NULL)
        : opdi_optimizer_make(group->kind, params, count, NULL, &group->adam);
}
int opd_optimizer_add_group(opd_optimizer *optimizer, opd_tensor *const *params, int count) {
    if (!opd_ok() || opdi_null_optimizer(optimizer, "opd_optimizer_add_group")) { return -1; }
    for (const opd_optimizer *group = optimizer; group; group = group->next) {
        for (int i = 0; params && i < count; i++) {
            if (opdi_group_find(group, params[i]) >= 0) {
                return opd_fail(OPD_ERROR_ARGUMENT, "some parameters appear in more than one parameter group (%d)", i);
            }
        }
    }
    opd_optimizer *const fresh = opdi_group_like(optimizer, params, count);
    return fresh ? opdi_group_append(optimizer, fresh) : -1;
}
/* Removes parameter i and its state from a group, without releasing them. */
static void opdi_group_take(opd_optimizer *group, int i) {
    int to = 0;
    for (int from = 0; from < group->count * (1 + OPDI_STATES); from++) {
        if (from % group->count != i) { group->params[to++] = group->params[from]; }
    }
    memmove(group->begun + i, group->begun + i + 1, (size_t)(group->count - i - 1) * sizeof *group->begun);
    group->count--;
}
int opd_optimizer_move_group(opd_optimizer *optimizer, opd_tensor *const *params, int count) {
    if (!opd_ok() || opdi_null_optimizer(optimizer, "opd_optimizer_move_group")) { return -1; }
    const opd_optimizer *first = NULL;
    for (int i = 0; params && i < count; i++) {
        const opd_optimizer *group = optimizer;
        while (group && opdi_group_find(group, params[i]) < 0) { group = group->next; }
        for (int k = 0; group && k < i; k++) { if (params[k] == params[i]) { group = NULL; } }
        if (!group) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_optimizer_move_group: parameter %d is not in a group of the "
                            "optimizer, or is given twice", i);
        }
        first = first ? first : group;
    }
    opd_optimizer *const fresh = opdi_group_like(first ? first : optimizer, params, count);
    if (!fresh) { return -1; }
    for (int i = 0; i < count; i++) {
        opd_optimizer *group = optimizer;
        int at;
        while ((at = opdi_group_find(group, params[i])) < 0) { group = group->next; }
        opdi_release(group->params[at]);           /* the new group has its own reference */
        for (int k = 0; k < OPDI_STATES; k++) { *opdi_state_of(fresh, k, i) = *opdi_state_of(group, k, at); }
        fresh->begun[i] = group->begun[at];
        opdi_group_take(group, at);
    }
    return opdi_group_append(optimizer, fresh);
}

/* The options by name.  adam: true for options of Adam and AdamW, false for options of SGD.  flag: true if the option
   is a bool.  at: the offset of the option in the struct of options. */
static const struct { const char *name; bool adam, flag; size_t at; } opdi_group_options[] = {
    {"lr", false, false, offsetof(opd_sgd_options, lr)},
    {"momentum", false, false, offsetof(opd_sgd_options, momentum)},
    {"dampening", false, false, offsetof(opd_sgd_options, dampening)},
    {"weight_decay", false, false, offsetof(opd_sgd_options, weight_decay)},
    {"nesterov", false, true, offsetof(opd_sgd_options, nesterov)},
    {"maximize", false, true, offsetof(opd_sgd_options, maximize)},
    {"lr", true, false, offsetof(opd_adam_options, lr)}, {"beta1", true, false, offsetof(opd_adam_options, beta1)},
    {"beta2", true, false, offsetof(opd_adam_options, beta2)}, {"eps", true, false, offsetof(opd_adam_options, eps)},
    {"weight_decay", true, false, offsetof(opd_adam_options, weight_decay)},
    {"amsgrad", true, true, offsetof(opd_adam_options, amsgrad)},
    {"maximize", true, true, offsetof(opd_adam_options, maximize)}};
/* Returns the row of option `name` in opdi_group_options, or -1 and sets an error. */
static int opdi_option_find(const opd_optimizer *group, const char *name, const char *function) {
    for (int i = 0; name && i < (int)(sizeof opdi_group_options / sizeof opdi_group_options[0]); i++) {
        if (opdi_group_options[i].adam == (group->kind != OPDI_SGD) && strcmp(opdi_group_options[i].name, name) == 0) {
            return i;
        }
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s has no option '%s': it has %s", function, opd_optimizer_name(group),
                    name ? name : "(null)", group->kind == OPDI_SGD ?
                    "lr, momentum, dampening, weight_decay, nesterov and maximize" :
                    "lr, beta1, beta2, eps, weight_decay, amsgrad and maximize");
}
double opd_optimizer_option(const opd_optimizer *optimizer, int group, const char *name) {
    const opd_optimizer *const its = opdi_group_at(optimizer, group, "opd_optimizer_option");
    const int row = its ? opdi_option_find(its, name, "opd_optimizer_option") : -1;
    if (row < 0) { return NAN; }
    const char *const at = (opdi_group_options[row].adam ? (const char *)&its->adam : (const char *)&its->sgd) +
        opdi_group_options[row].at;
    return opdi_group_options[row].flag ? *(const bool *)(const void *)at : *(const double *)(const void *)at;
}
int opd_optimizer_set_option(opd_optimizer *optimizer, int group, const char *name, double value) {
    if (!opd_ok() || !opdi_group_at(optimizer, group, "opd_optimizer_set_option")) { return -1; }
    for (int i = 0; i < group; i++) { optimizer = optimizer->next; }
    const int row = opdi_option_find(optimizer, name, "opd_optimizer_set_option");
    opd_sgd_options sgd = optimizer->sgd;
    opd_adam_options adam = optimizer->adam;
    if (row < 0) { return -1; }
    char *const at = (opdi_group_options[row].adam ? (char *)&adam : (char *)&sgd) + opdi_group_options[row].at;
    if (opdi_group_options[row].flag) {
        *(bool *)(void *)at = value > 0 || value < 0;
    } else {
        *(double *)(void *)at = value;
    }
    if (optimizer->kind == OPDI_SGD ? opdi_sgd_check(&sgd) : opdi_adam_check(&adam)) { return -1; }
    optimizer->sgd = sgd;
    optimizer->adam = adam;
    return 0;
}
/* Returns the set of states that each parameter has, as bits: bit k for state k (opdi_state_names). */
static unsigned opdi_states_of(const opd_optimizer *optimizer) {
    return optimizer->kind == OPDI_SGD ? (optimizer->sgd.momentum > 0 ? 1u : 0u) : optimizer->adam.amsgrad ? 15u : 11u;
}
/* Gives parameter i its missing states, filled with zeros.  Returns 0, or -1 and sets an error. */
static int opdi_optimizer_begin(const opd_optimizer *optimizer, int i) {
    for (int k = 0; k < OPDI_STATES && opd_ok(); k++) {
        opd_tensor **tensors = opdi_state_of(optimizer, k, i);
        const int64_t none = 0;
        if (*tensors || !(opdi_states_of(optimizer) >> k & 1)) { continue; }
        OPD_SCOPE {
            *tensors = opdi_keep(k == 3 ? opd_zeros(opd_ints_of(&none, 0), OPD_FLOAT32)
                                 : opd_zeros_like(optimizer->params[i]));
        }
    }
    return opd_ok() ? 0 : -1;
}
static opd_tensor **opdi_optimizer_find(const opd_optimizer *optimizer, int i, const char *name, const char *function) {
    if (opdi_null_optimizer(optimizer, function)) { return NULL; }
    int its = i;
    const opd_optimizer *const group = opdi_group_of(optimizer, &its);
    for (int k = 0; k < OPDI_STATES && name && group; k++) {
        const char *has = opdi_states_of(group) >> k & 1 ? opdi_state_names[group->kind != OPDI_SGD][k] : NULL;
        if (has && strcmp(has, name) == 0) { return opdi_state_of(group, k, its); }
    }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the optimizer has no state '%s' for parameter %d", function,
                   name ? name : "(null)", i);
    return NULL;
}
opd_tensor *opd_optimizer_state(const opd_optimizer *optimizer, int i, const char *name) {
    opd_tensor **tensors = opdi_optimizer_find(optimizer, i, name, "opd_optimizer_state");
    return tensors ? *tensors : NULL;
}
int opd_optimizer_forget(opd_optimizer *optimizer, int i) {
    int its = i;
    const opd_optimizer *const group = opdi_group_of(optimizer, &its);
    if (opdi_null_optimizer(optimizer, "opd_optimizer_forget")) { return -1; }
    if (!group) { return opd_fail(OPD_ERROR_INDEX, "opd_optimizer_forget: the optimizer has no parameter %d", i); }
    for (int k = 0; k < OPDI_STATES; k++) {
        opd_tensor **const tensors = opdi_state_of(group, k, its);
        opdi_release(*tensors);
        *tensors = NULL;
    }
    group->begun[its] = false;
    return 0;
}
int opd_optimizer_set_state(opd_optimizer *optimizer, int i, const char *name, const opd_tensor *value) {
    opd_tensor **tensors = opd_ok() ? opdi_optimizer_find(optimizer, i, name, "opd_optimizer_set_state") : NULL;
    int its = i;
    const opd_optimizer *const group = opdi_group_of(optimizer, &its);
    if (!tensors || opdi_null_tensor(value, "opd_optimizer_set_state") || opdi_optimizer_begin(group, its)) {
        return -1;
    }
    if (!opdi_has_sizes(value, (*tensors)->dims, (*tensors)->ndim)) {
        return opd_fail(OPD_ERROR_SHAPE, "opd_optimizer_set_state: '%s' has other sizes than parameter %d", name, i);
    }
    if (opdi_copy(*tensors, value)) { return -1; }
    group->begun[its] = true;
    return 0;
}

static void opdi_optimizer_count(const opd_optimizer *optimizer, int count, float by) {
    for (int i = 0; i < count && optimizer->kind != OPDI_SGD; i++) {
        *(float *)(void *)optimizer->lists[(size_t)(5 * optimizer->count + i)]->data += by;
    }
}
/* Calls the operator that makes a step, for the `count` parameters in optimizer->lists.  `first` is true if this is the
   first step of these parameters.  Returns 0, or -1 and sets an error. */
static int opdi_optimizer_call(opd_optimizer *optimizer, int count, bool first) {
    if (count < 0) { return -1; }
    static opd_op *ops[3];
    static const char *const names[] = {"aten::_fused_sgd_", "aten::_fused_adam_", "aten::_fused_adamw_"};
    opd_op *op = OPD_OP(&ops[optimizer->kind], names[optimizer->kind]);
    opd_value values[15], rets[1];
    int at = optimizer->kind == OPDI_SGD ? 3 : 6;
    for (int k = 0; k < at; k++) {
        const bool there = k < 2 || (opdi_states_of(optimizer) >> (k - 2) & 1);
        values[k] = opd_value_tensors(optimizer->lists + (size_t)(k * optimizer->count), there ? count : 0);
    }
    if (optimizer->kind == OPDI_SGD) {
        values[at++] = opd_value_double(optimizer->sgd.weight_decay);
        values[at++] = opd_value_double(optimizer->sgd.momentum);
        values[at++] = opd_value_double(optimizer->sgd.lr);
        values[at++] = opd_value_double(optimizer->sgd.dampening);
        values[at++] = opd_value_bool(optimizer->sgd.nesterov);
        values[at++] = opd_value_bool(optimizer->sgd.maximize);
        values[at++] = opd_value_bool(first);
    } else {
        values[at++] = opd_value_double(optimizer->adam.lr);
        values[at++] = opd_value_double(optimizer->adam.beta1);
        values[at++] = opd_value_double(optimizer->adam.beta2);
        values[at++] = opd_value_double(optimizer->adam.weight_decay);
        values[at++] = opd_value_double(optimizer->adam.eps);
        values[at++] = opd_value_bool(optimizer->adam.amsgrad);
        values[at++] = opd_value_bool(optimizer->adam.maximize);
    }
    values[at] = values[at + 1] = opd_value_none();
    opdi_optimizer_count(optimizer, count, 1);
    int rc = opd_call_all(op, rets, values, at + 2);
    if (rc) { opdi_optimizer_count(optimizer, count, -1); }
    return rc;
}
/* Returns a tensor as the operators for steps take it: a complex one as pairs of real numbers, in the innermost scope,
   and every other one as it is.  Returns NULL and sets an error if that fails. */
static opd_tensor *opdi_optimizer_pairs(opd_tensor *tensor) {
    return tensor && opdi_is_complex(tensor) ? opd_view_as_real(opd_resolve_conj(tensor)) : tensor;
}
/* Fills optimizer->lists with parameters that have a gradient: if `which` is 0, those that have taken a step; if 1,
   those that have not; if 2, both.  Returns their number, or -1 and sets an error. */
static int opdi_optimizer_lists(const opd_optimizer *optimizer, int which) {
    int count = 0;
    for (int i = 0; i < optimizer->count && opd_ok(); i++) {
        opd_tensor *const grad = opd_tensor_grad(optimizer->params[i]);
        if (!grad || (which < 2 && optimizer->begun[i] == (which == 1))) { continue; }
        for (int k = 0; k < 2 + OPDI_STATES; k++) {
            opd_tensor *const its = k == 0 ? optimizer->params[i] : k == 1 ? grad : *opdi_state_of(optimizer, k - 2, i);
            optimizer->lists[(size_t)(k * optimizer->count + count)] = opdi_optimizer_pairs(its);
        }
        count++;
    }
    return opd_ok() ? count : -1;
}
/* Takes a step by two calls: first for parameters that have taken a step before, then for new parameters.  If the
   second call fails, undoes the first.  Returns 0, or -1 and sets an error. */
static int opdi_optimizer_halves(opd_optimizer *optimizer) {
    opd_scope scope = opd_scope_open();
    const int count = opdi_optimizer_lists(optimizer, 0);
    opd_tensor **was = count < 0 ? NULL : (opd_tensor **)opdi_scope_alloc((size_t)count * 2 * sizeof *was);
    int rc = was ? 0 : -1;
    for (int i = 0; i < count && rc == 0; i++) {
        was[i] = opd_clone(optimizer->lists[i]);
        was[count + i] = opd_clone(optimizer->lists[(size_t)(2 * optimizer->count + i)]);
        rc = was[i] && was[count + i] ? 0 : -1;
    }
    opd_tensor **const written = rc ? NULL : (opd_tensor **)opdi_scope_alloc((size_t)count * 2 * sizeof *written);
    rc = written ? 0 : -1;
    for (int i = 0; i < count && rc == 0; i++) {
        written[i] = optimizer->lists[i];
        written[count + i] = optimizer->lists[(size_t)(2 * optimizer->count + i)];
    }
    if (rc == 0) { rc = opdi_optimizer_call(optimizer, count, false); }
    if (rc == 0 && (rc = opdi_optimizer_call(optimizer, opdi_optimizer_lists(optimizer, 1), true)) != 0) {
        for (int i = 0; i < 2 * count; i++) { (void)opdi_copy(written[i], was[i]); }
    }
    opd_scope_close(&scope);
    return rc;
}

/* Takes one step for the parameters of a group that have a gradient.  First makes the states of new parameters.
   Returns 0, or -1 and sets an error. */
static int opdi_group_step(opd_optimizer *optimizer) {
    int rc = 0, begun = 0, fresh = 0;
    for (int i = 0; i < optimizer->count && rc == 0; i++) {
        if (!opd_tensor_grad(optimizer->params[i])) { continue; }
        if (optimizer->begun[i]) {
            begun++;
        } else {
            fresh++;
            rc = opdi_optimizer_begin(optimizer, i);
        }
    }
    if (rc == 0 && begun + fresh) {            /* one call suffices if a first step equals a step from zeros */
        const bool dampened = optimizer->kind == OPDI_SGD && optimizer->sgd.momentum > 0 &&
            fabs(optimizer->sgd.dampening) > 0;
        opd_scope scope = opd_scope_open();
        rc = dampened && begun && fresh ? opdi_optimizer_halves(optimizer)
            : opdi_optimizer_call(optimizer, opdi_optimizer_lists(optimizer, 2), dampened && fresh);
        opd_scope_close(&scope);
    }
    for (int i = 0; i < optimizer->count && rc == 0 && opdi_states_of(optimizer); i++) {
        optimizer->begun[i] = optimizer->begun[i] || opd_tensor_grad(optimizer->params[i]);
    }
    return rc;
}
int opd_optimizer_step(opd_optimizer *optimizer) {
    int rc = 0;
    if (!opd_ok() || opdi_null_optimizer(optimizer, "opd_optimizer_step")) { return -1; }
    const bool was = opd_grad_mode_set(false);
    opdi_ref_up(&optimizer->refs);
    for (opd_optimizer *group = optimizer; group && rc == 0; group = group->next) { rc = opdi_group_step(group); }
    opd_optimizer_free(optimizer);
    (void)opd_grad_mode_set(was);
    return rc;
}
