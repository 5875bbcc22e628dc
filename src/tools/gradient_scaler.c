#include "tools.h"

//== the gradient scaler ===============================================================================================

enum { OPDI_SCALER_READY, OPDI_SCALER_UNSCALED, OPDI_SCALER_STEPPED };
/* The state of an optimizer since the last update of the scale.  `stage` is one of OPDI_SCALER_*. */
typedef struct opdi_scaler_record {
    struct opdi_scaler_record *next;
    uint64_t optimizer;                           /* optimizer->number, because an address may be reused */
    int stage;
    bool checked, found_inf;
} opdi_scaler_record;
struct opd_scaler {
    int32_t refs;                                 /* the program has one reference, and each function that calls
                                                     operators has one */
    opd_scaler_state state;
    bool enabled, used;                           /* used: true if a tensor was scaled */
    opdi_scaler_record *first;
};

opd_scaler_options opd_scaler_defaults(void) {
    opd_scaler_options options;
    memset(&options, 0, sizeof options);
    options.init_scale = 65536;
    options.growth_factor = 2;
    options.backoff_factor = 0.5;
    options.growth_interval = 2000;
    options.enabled = true;
    return options;
}
static int opdi_scaler_check(const opd_scaler_state *state) {
    const float scale = (float)state->scale;
    if (!(state->growth_factor > 1)) { return opd_fail(OPD_ERROR_ARGUMENT, "Growth factor must be > 1.0"); }
    if (!(state->backoff_factor < 1)) { return opd_fail(OPD_ERROR_ARGUMENT, "Backoff factor must be < 1.0"); }
    if (!(scale > 0) || !(scale < OPDI_INF) || state->growth_interval < 1 || state->growth_tracker < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "gradient scaler: scale (%g) and growth_interval (%lld) must be positive, "
                        "and growth_tracker (%lld) must be at least 0", state->scale, (long long)state->growth_interval,
                        (long long)state->growth_tracker);
    }
    return 0;
}
static int opdi_null_scaler(const opd_scaler *scaler, const char *function) {
    if (!opd_ok()) { return -1; }
    return scaler ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s: the scaler is NULL", function);
}
opd_scaler *opd_scaler_new(const opd_scaler_options *options) {
    const opd_scaler_options used = options ? *options : opd_scaler_defaults();
    opd_scaler_state state;
    opd_scaler *scaler;
    memset(&state, 0, sizeof state);
    state.scale = used.enabled ? used.init_scale : 1;
    state.growth_factor = used.growth_factor;
    state.backoff_factor = used.backoff_factor;
    state.growth_interval = used.growth_interval;
    if (!opd_ok() || opdi_scaler_check(&state) || !(scaler = (opd_scaler *)opdi_alloc(sizeof *scaler))) { return NULL; }
    memset(scaler, 0, sizeof *scaler);
    scaler->refs = 1;
    scaler->state = state;
    scaler->enabled = used.enabled;
    return scaler;
}
static void opdi_scaler_forget(opd_scaler *scaler) {
    opdi_scaler_record *record;
    while ((record = scaler->first) != NULL) {
        scaler->first = record->next;
        opdi_free(record, sizeof *record);
    }
}
void opd_scaler_free(opd_scaler *scaler) {
    if (!scaler || opdi_ref_down(&scaler->refs)) { return; }
    opdi_scaler_forget(scaler);
    opdi_free(scaler, sizeof *scaler);
}
opd_scaler_state opd_scaler_get(const opd_scaler *scaler) {
    opd_scaler_state none;
    memset(&none, 0, sizeof none);
    return scaler ? scaler->state : none;
}
int opd_scaler_set(opd_scaler *scaler, opd_scaler_state state) {
    if (opdi_null_scaler(scaler, "opd_scaler_set") || opdi_scaler_check(&state)) { return -1; }
    scaler->state = state;
    return 0;
}

/* Returns a float32 tensor without dims that holds `value`, on the device of `tensor`, or NULL and sets an error. */
static opd_tensor *opdi_scaler_number(const opd_tensor *tensor, double value) {
    const int64_t none = 0;
    opd_tensor *number = opd_tensor_new_on(opd_ints_of(&none, 0), OPD_FLOAT32, opd_tensor_device(tensor));
    return number ? opd_fill_(number, opd_value_double(value)) : NULL;
}
opd_tensor *opd_scaler_scale(opd_scaler *scaler, opd_tensor *tensor) {
    if (opdi_null_scaler(scaler, "opd_scaler_scale") || opdi_null_tensor(tensor, "opd_scaler_scale")) { return NULL; }
    if (!scaler->enabled) { return tensor; }
    scaler->used = true;
    return opd_mul(tensor, opdi_scaler_number(tensor, scaler->state.scale));
}

static opdi_scaler_record *opdi_scaler_of(opd_scaler *scaler, const opd_optimizer *optimizer) {
    opdi_scaler_record *record = scaler->first;
    while (record && record->optimizer != optimizer->number) { record = record->next; }
    if (record || !(record = (opdi_scaler_record *)opdi_alloc(sizeof *record))) { return record; }
    memset(record, 0, sizeof *record);
    record->optimizer = optimizer->number;
    record->next = scaler->first;
    scaler->first = record;
    return record;
}
/* Divides the gradients on the device of parameter number `first` by the scale.  Returns true if a gradient was not
   finite. */
static bool opdi_scaler_unscale_on(const opd_scaler *scaler, opd_optimizer *optimizer, int first) {
    static opd_op *unscale;
    opd_tensor *grad = opd_tensor_grad(optimizer->params[first]);
    const opd_device device = opd_tensor_device(grad);
    opd_value values[3], rets[1];
    int count = 0;
    for (int i = first; i < optimizer->count; i++) {
        if (!(grad = opd_tensor_grad(optimizer->params[i]))) { continue; }
        opd_device other = opd_tensor_device(grad);
        if (other.type == device.type && other.index == device.index) { optimizer->lists[count++] = grad; }
    }
    opd_tensor *found = opdi_scaler_number(optimizer->lists[0], 0);
    values[0] = opd_value_tensors(optimizer->lists, count);
    values[1] = opd_value_tensor(found);
    values[2] = opd_value_tensor(opdi_scaler_number(optimizer->lists[0], 1 / scaler->state.scale));
    bool bad = opd_call_all(OPD_OP(&unscale, OPDI_NAME(_amp_foreach_non_finite_check_and_unscale_,
                                                     "aten::_amp_foreach_non_finite_check_and_unscale_")), rets, values,
                            3) == 0 && opd_item_f64(found) > 0;
    return bad;
}
/* Divides all gradients of a group by the scale, device by device, and records whether a gradient was not finite.
   Returns 0, or -1 and sets an error. */
static int opdi_scaler_unscale(opd_scaler *scaler, opdi_scaler_record *record, opd_optimizer *optimizer) {
    opd_scope scope = opd_scope_open();
    const bool was = opd_grad_mode_set(false);
    int k;
    for (int i = 0; i < optimizer->count; i++) {
        const opd_tensor *grad = opd_tensor_grad(optimizer->params[i]);
        if (grad && grad->dtype == OPD_FLOAT16) {
            (void)opd_fail(OPD_ERROR_DTYPE, "Attempting to unscale FP16 gradients.");
        }
    }
    for (int i = 0; i < optimizer->count && opd_ok(); i++) {
        const opd_tensor *grad = opd_tensor_grad(optimizer->params[i]);
        for (k = 0; k < i && grad; k++) {         /* finds out whether parameter i is the first on its device */
            const opd_tensor *hidden = opd_tensor_grad(optimizer->params[k]);
            if (hidden && opdi_place_of(hidden) == opdi_place_of(grad)) { break; }
        }
        if (!grad || k < i) { continue; }
        record->found_inf |= opdi_scaler_unscale_on(scaler, optimizer, i);
        record->checked = true;
    }
    if (opd_ok()) { record->stage = OPDI_SCALER_UNSCALED; }
    (void)opd_grad_mode_set(was);
    opd_scope_close(&scope);
    return opd_ok() ? 0 : -1;
}
/* Divides the gradients of all groups by the scale.  Returns 0, or -1 and sets an error. */
static int opdi_scaler_unscale_all(opd_scaler *scaler, opdi_scaler_record *record, opd_optimizer *optimizer) {
    int rc = 0;
    for (; optimizer && rc == 0; optimizer = optimizer->next) { rc = opdi_scaler_unscale(scaler, record, optimizer); }
    return rc;
}
/* Fails if a parameter is only this rank's part of a sharded parameter, because the result would depend on all parts.
   The error names `function`, and `instead` as the function to call instead.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_parts_refuse(opd_tensor *const *params, int count, const char *function, const char *instead) {
    bool (*const is_part)(const opd_tensor *tensor) = OPDI_ACQUIRE(&opdi_is_part);
    for (int i = 0; is_part && i < count; i++) {
        if (!is_part(params[i])) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: parameter %d is only this rank's part of a sharded parameter (%s)",
                        function, i, instead);
    }
    return 0;
}
/* Checks the arguments of opd_scaler_unscale and opd_scaler_step.  Returns the record of the optimizer, or NULL and
   sets an error. */
static opdi_scaler_record *opdi_scaler_begin(opd_scaler *scaler, opd_optimizer *optimizer, const char *function) {
    if (opdi_null_scaler(scaler, function) || opdi_null_optimizer(optimizer, function)) { return NULL; }
    if (scaler->enabled && !scaler->used) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "Attempted %s but nothing was scaled.  This may indicate your program did "
                       "not use opd_scaler_scale on the loss or outputs earlier in the iteration.", function);
        return NULL;
    }
    for (const opd_optimizer *group = optimizer; group && scaler->enabled; group = group->next) {
        if (opdi_parts_refuse(group->params, group->count, function,
                              "only one rank would know that a gradient is infinite")) { return NULL; }
    }
    return opdi_scaler_of(scaler, optimizer);
}
static int opdi_scaler_unscale_once(opd_scaler *scaler, opd_optimizer *optimizer) {
    opdi_scaler_record *record = opdi_scaler_begin(scaler, optimizer, "opd_scaler_unscale");
    if (!record || !scaler->enabled) { return record ? 0 : -1; }
    if (record->stage == OPDI_SCALER_UNSCALED) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_scaler_unscale has already been called on this optimizer since the "
                        "last update.");
    }
    if (record->stage == OPDI_SCALER_STEPPED) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_scaler_unscale is being called after opd_scaler_step.");
    }
    return opdi_scaler_unscale_all(scaler, record, optimizer);
}
static int opdi_scaler_step(opd_scaler *scaler, opd_optimizer *optimizer) {
    opdi_scaler_record *record = opdi_scaler_begin(scaler, optimizer, "opd_scaler_step");
    if (!record || !scaler->enabled) { return record ? opd_optimizer_step(optimizer) : -1; }
    if (record->stage == OPDI_SCALER_STEPPED) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_scaler_step has already been called since the last update.");
    }
    if (record->stage == OPDI_SCALER_READY && opdi_scaler_unscale_all(scaler, record, optimizer)) { return -1; }
    if (!record->checked) {
        return opd_fail(OPD_ERROR_ARGUMENT, "No inf checks were recorded for this optimizer: no parameter has a "
                        "gradient.");
    }
    if (!record->found_inf && opd_optimizer_step(optimizer)) { return -1; }
    record->stage = OPDI_SCALER_STEPPED;
    return record->found_inf;
}
/* Calls `run`.  If a kernel frees the scaler or the optimizer meanwhile, they are freed afterwards. */
static int opdi_scaler_run(opd_scaler *scaler, opd_optimizer *optimizer, int (*run)(opd_scaler *, opd_optimizer *)) {
    if (scaler) { opdi_ref_up(&scaler->refs); }
    if (optimizer) { opdi_ref_up(&optimizer->refs); }
    const int rc = run(scaler, optimizer);
    opd_optimizer_free(optimizer);
    opd_scaler_free(scaler);
    return rc;
}
int opd_scaler_unscale(opd_scaler *scaler, opd_optimizer *optimizer) {
    return opdi_scaler_run(scaler, optimizer, opdi_scaler_unscale_once);
}
int opd_scaler_step(opd_scaler *scaler, opd_optimizer *optimizer) {
    return opdi_scaler_run(scaler, optimizer, opdi_scaler_step);
}
/* Updates the scale and the growth tracker with _amp_update_scale_.  `found` is true if a gradient was not finite.
   Returns 0, or -1 and sets an error. */
static int opdi_scaler_move(opd_scaler *scaler, bool found) {
    static opd_op *update;
    const int64_t none = 0;
    const float scale = (float)scaler->state.scale, inf = found;
    opd_value values[6];
    OPD_SCOPE {
        values[0] = opd_value_tensor(opd_tensor_from(&scale, opd_ints_of(&none, 0), OPD_FLOAT32));
        values[1] = opd_value_tensor(opd_tensor_from(&scaler->state.growth_tracker, opd_ints_of(&none, 0), OPD_INT64));
        values[2] = opd_value_tensor(opd_tensor_from(&inf, opd_ints_of(&none, 0), OPD_FLOAT32));
        values[3] = opd_value_double(scaler->state.growth_factor);
        values[4] = opd_value_double(scaler->state.backoff_factor);
        values[5] = opd_value_int(scaler->state.growth_interval);
        if (opd_call_op(OPD_OP(&update, OPDI_NAME(_amp_update_scale_, "aten::_amp_update_scale_")), values, 6)) {
            scaler->state.scale = opd_item_f64(values[0].u.t);
            scaler->state.growth_tracker = opd_item_i64(values[1].u.t);
        }
    }
    return opd_ok() ? 0 : -1;
}
/* Sets the scale to new_scale.  If new_scale is 0, updates the scale according to the steps since the last update,
   and then clears their records.  Returns 0, or -1 and sets an error. */
int opd_scaler_update(opd_scaler *scaler, double new_scale) {
    bool checked = false, found = false;
    if (opdi_null_scaler(scaler, "opd_scaler_update")) { return -1; }
    if (!scaler->enabled) { return 0; }
    if (new_scale > 0 || new_scale < 0) {
        opd_scaler_state state = scaler->state;
        state.scale = new_scale;
        if (opd_scaler_set(scaler, state)) { return -1; }
    } else {
        for (const opdi_scaler_record *record = scaler->first; record; record = record->next) {
            checked |= record->checked;
            found |= record->found_inf;
        }
        if (!checked) { return opd_fail(OPD_ERROR_ARGUMENT, "No inf checks were recorded prior to update."); }
        opdi_ref_up(&scaler->refs);               /* a kernel may free the scaler */
        const int rc = opdi_scaler_move(scaler, found);
        if (rc == 0) { opdi_scaler_forget(scaler); }
        opd_scaler_free(scaler);
        return rc;
    }
    opdi_scaler_forget(scaler);
    return 0;
}
