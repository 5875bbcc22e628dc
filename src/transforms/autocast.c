#include "transforms.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>autocast     regions, policies, the cache of cast weights
//
//  Every tensor has the autocast key of its backend, and every thread excludes that key until an autocast region
//  begins.  So autocast costs nothing while it is off.  A region is stored in the modes of its thread, as an index into
//  a list of states; the dispatcher restores the modes after every kernel.
//
//  A policy tells how an operator chooses its dtype.  The kernel of a policy casts the arguments and calls the operator
//  again below the autocast keys.  This section uses the dispatcher and public operators, and follows
//  aten/src/ATen/autocast_mode.cpp and torch/amp.
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

//== regions ===========================================================================================================

OPDI_INTERNAL opdi_autocast_states opdi_autocasts = {
    OPDI_MUTEX_INIT, 0, {{0, 0, {0}}}};
static const opdi_autocast_state opdi_autocast_outside = {0xffff, 0, {0}};
static uint32_t opdi_autocast_supported[OPD_BACKEND_COUNT];      /* one bit per dtype; 0: not set */

static const opdi_autocast_state *opdi_autocast_here(const opdi_thread *thread) {
    const uint16_t number = thread->state.autocast;
    return number ? &opdi_autocasts.at[(number - 1) % OPDI_AUTOCAST_STATES] : &opdi_autocast_outside;
}
static bool opdi_autocast_allowed(const opdi_thread *thread) {
    return (thread->state.allow & OPD_BIT_OF(OPD_F_AUTOCAST)) != 0;
}
static void opdi_autocast_allow(opdi_thread *thread, bool on) {
    const uint64_t bit = OPD_BIT_OF(OPD_F_AUTOCAST);
    thread->state.allow = on ? thread->state.allow | bit : thread->state.allow & ~bit;
}
OPDI_INTERNAL bool opdi_autocast_is_on(const opdi_thread *thread, int device) {
    return opdi_autocast_allowed(thread) && (opdi_autocast_here(thread)->on >> device & 1);
}

/* Returns the number of an autocast state.  Adds the state to the list if it is not in it.  Returns 0 and sets an error
   if the list is full. */
static uint16_t opdi_autocast_number(const opdi_autocast_state *state) {
    int i;
    opdi_lock(&opdi_autocasts.lock);
    for (i = 0; i < opdi_autocasts.n && memcmp(state, &opdi_autocasts.at[i], sizeof *state) != 0; i++) { }
    if (i == opdi_autocasts.n && i < OPDI_AUTOCAST_STATES) { opdi_autocasts.at[opdi_autocasts.n++] = *state; }
    opdi_unlock(&opdi_autocasts.lock);
    if (i < OPDI_AUTOCAST_STATES) { return (uint16_t)(i + 1); }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "autocast: more than %d different states of autocast are not possible",
                   OPDI_AUTOCAST_STATES);
    return 0;
}

static opd_scalar_type opdi_autocast_default(int device) {
    switch (device) {
    case OPD_CPU: case OPD_XLA: case OPD_HPU: return OPD_BFLOAT16;
    case OPD_CUDA: case OPD_HIP: case OPD_MPS: case OPD_IPU: case OPD_XPU:
    case OPD_PRIVATEUSE1: case OPD_PRIVATEUSE2: case OPD_PRIVATEUSE3: return OPD_FLOAT16;
    default: return OPD_DTYPE_NONE;
    }
}
static opd_scalar_type opdi_autocast_dtype_of(const opdi_thread *thread, int device) {
    const int dtype = opdi_autocast_here(thread)->dtype[device];
    return dtype ? (opd_scalar_type)dtype : opdi_autocast_default(device);
}

/* Returns the dtypes that autocast regions of a device may have, with one bit per dtype. */
static uint32_t opdi_autocast_dtypes(int device) {
    const uint32_t declared = OPDI_LOAD(&opdi_autocast_supported[device]);
    return declared ? declared : 1u << OPD_BFLOAT16 | 1u << OPD_FLOAT16 |
        (device == OPD_CUDA || device == OPD_HIP ? 1u << OPD_FLOAT32 : 0u);
}
/* Warns that autocast stays off in a region, because the device does not support the region's dtype.  Returns 0. */
static int opdi_autocast_unsupported(int device) {
    static const opd_scalar_type all[] = {OPD_BFLOAT16, OPD_FLOAT16, OPD_FLOAT32};
    char name[32], names[64];
    size_t i, length = 0;
    (void)snprintf(name, sizeof name, "%s", opdi_device_name(device));
    for (i = 0; name[i] && device < OPD_PRIVATEUSE1; i++) {
        if (name[i] >= 'a' && name[i] <= 'z') { name[i] = (char)(name[i] - 'a' + 'A'); }
    }
    for (i = 0, names[0] = 0; i < sizeof all / sizeof all[0]; i++) {
        if (!(opdi_autocast_dtypes(device) >> all[i] & 1)) { continue; }
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "",
                                   opd_dtype_name(all[i]));
    }
    opd_warn("In %s autocast, but the target dtype is not supported. Disabling autocast.\n%s Autocast only supports "
             "dtypes of %s currently.", name, name, names);
    return 0;
}

/* Checks that a region can be on for `device` with this dtype.  Returns 1 if it can; 0, after a warning, if it cannot;
   or -1 and sets an error. */
static int opdi_autocast_check(opd_backend device, opd_scalar_type dtype) {
    if ((unsigned)device >= OPD_BACKEND_COUNT || opdi_autocast_default((int)device) == OPD_DTYPE_NONE) {
        return opd_fail(OPD_ERROR_ARGUMENT, "User specified an unsupported autocast device_type '%s'",
                        (unsigned)device < OPD_BACKEND_COUNT ? opdi_device_name((int)device) : "?");
    }
    if (device != OPD_CPU && !opdi_backend_of((int)device) && !(opdi_self()->innermost.fake &&
        device < OPD_PRIVATEUSE1)) {
        if (device >= OPD_PRIVATEUSE1) {
            return opd_fail(OPD_ERROR_ARGUMENT, "autocast: the backend '%s' is not registered (opd_backend_register)",
                            opdi_device_name((int)device));
        }
        opd_warn("User provided device_type of '%s', but it is not available. Disabling autocast.",
                 opdi_device_name((int)device));
        return 0;
    }
    if ((unsigned)dtype < 32 && (opdi_autocast_dtypes((int)device) >> dtype & 1)) { return 1; }
    return opdi_autocast_unsupported((int)device);
}

static void opdi_policies_reach(void);
/* Begins an autocast region for one device, inside the regions that are already open.  On failure, sets an error and
   returns a region whose `open` is false. */
opd_autocast_region opd_autocast_begin(opd_backend device, opd_scalar_type dtype, bool enabled, int cache) {
    opdi_thread *thread = opdi_self();
    opd_autocast_region region;
    uint16_t number;
    opdi_policies_reach();
    (void)opdi_visits_left(thread);
    opdi_autocast_state state = *opdi_autocast_here(thread);
    memset(&region, 0, sizeof region);
    if (dtype != OPD_DTYPE_NONE && !opd_dtype_size(dtype)) {
        (void)opd_fail(OPD_ERROR_DTYPE, "opd_autocast_begin: %d is not a dtype", (int)dtype);
        return region;
    }
    if (dtype == OPD_DTYPE_NONE && (unsigned)device < OPD_BACKEND_COUNT) {
        dtype = opdi_autocast_dtype_of(thread, (int)device);
    }
    int on = enabled || (unsigned)device >= OPD_BACKEND_COUNT || opdi_autocast_default((int)device) == OPD_DTYPE_NONE
        ? opdi_autocast_check(device, dtype) : 0;
    if (on < 0) { return region; }
    uint16_t bit = (uint16_t)(1u << device);
    region.was_on = opdi_autocast_allowed(thread);
    if (!region.was_on) { state.on = 0; }
    state.on = (uint16_t)(on ? state.on | bit : state.on & ~bit);
    state.dtype[device] = (int8_t)dtype;
    if (cache >= 0) { state.no_cache = cache == 0; }
    if (!(number = opdi_autocast_number(&state))) { return region; }
    region.was = thread->state.autocast;
    region.open = true;
    thread->state.autocast = number;
    opdi_autocast_allow(thread, state.on != 0);
    return region;
}

void opd_autocast_end(opd_autocast_region *region) {
    opdi_thread *thread = opdi_self();
    if (!region || !region->open) { return; }
    (void)opdi_visits_left(thread);
    region->open = false;
    thread->state.autocast = region->was;
    opdi_autocast_allow(thread, region->was_on);
    if (region->was == 0) { opd_autocast_cache_clear(); }
}

bool opd_autocast_enabled(opd_backend device) {
    return (unsigned)device < OPD_BACKEND_COUNT && opdi_autocast_is_on(opdi_self(), (int)device);
}
opd_scalar_type opd_autocast_dtype(opd_backend device) {
    return (unsigned)device < OPD_BACKEND_COUNT ? opdi_autocast_dtype_of(opdi_self(), (int)device) : OPD_DTYPE_NONE;
}
bool opd_autocast_cache_enabled(void) { return !opdi_autocast_here(opdi_self())->no_cache; }

int opd_autocast_support(opd_backend device, const opd_scalar_type *dtypes, int count) {
    uint32_t known = 0;
    if (!opd_ok()) { return -1; }
    for (int i = 0; dtypes && i < count; i++) {
        if (dtypes[i] != OPD_FLOAT16 && dtypes[i] != OPD_BFLOAT16 && dtypes[i] != OPD_FLOAT32) {
            return opd_fail(OPD_ERROR_DTYPE, "opd_autocast_support: the dtype of an autocast region must be float16, "
                            "bfloat16 or float32, not %s", opd_dtype_name(dtypes[i]));
        }
        known |= 1u << dtypes[i];
    }
    if (!known || device < OPD_PRIVATEUSE1 || device > OPD_PRIVATEUSE3) {
        return opd_fail(OPD_ERROR_ARGUMENT, known
                        ? "opd_autocast_support: dtypes can only be set for PrivateUse1 to PrivateUse3"
                        : "opd_autocast_support: there are no dtypes");
    }
    OPDI_STORE(&opdi_autocast_supported[device], known);
    return 0;
}

//== the cache of cast weights =========================================================================================
//
//  An entry of the cache is valid for a tensor with a certain dtype, version and memory.  If one of these changes, the
//  tensor needs a new entry.  Casts are always made with grad mode on, so that a recorded call can use a cast that was
//  made under no_grad.

OPDI_INTERNAL opdi_cast_cache opdi_casts = {
    OPDI_MUTEX_INIT, 0, {NULL}};

static opdi_cast **opdi_cast_chain(const opd_tensor *tensor) {
    return &opdi_casts.chains[((uintptr_t)tensor >> 6 ^ (uintptr_t)tensor >> 14) % OPDI_CAST_CHAINS];
}
static void opdi_cast_free(opdi_cast *cast) {
    opdi_release(cast->source);
    opdi_release(cast->cast);
    opdi_free(cast, sizeof *cast);
}

void opd_autocast_cache_clear(void) {
    opdi_cast *all = NULL, *cast;
    if (OPDI_LOAD(&opdi_casts.n) == 0) { return; }
    opdi_lock(&opdi_casts.lock);
    for (int i = 0; i < OPDI_CAST_CHAINS; i++) {
        while ((cast = opdi_casts.chains[i]) != NULL) {
            opdi_casts.chains[i] = cast->next;
            cast->next = all;
            all = cast;
        }
    }
    OPDI_STORE(&opdi_casts.n, 0);
    opdi_unlock(&opdi_casts.lock);
    while ((cast = all) != NULL) {
        all = cast->next;
        opdi_cast_free(cast);
    }
}
OPDI_COLD_END

OPDI_INTERNAL int opdi_cast_device(const opd_tensor *tensor);
OPDI_INTERNAL bool opdi_autocast_eligible(const opd_tensor *tensor, int device);

static bool opdi_cast_fits(const opdi_cast *cast, opd_scalar_type dtype, const opd_tensor *tensor) {
    return cast->source == tensor && cast->cast->dtype == (int32_t)dtype && cast->data == tensor->data &&
           !(tensor->flags & OPDI_LAZY) &&
           cast->version == OPDI_LOAD(&tensor->storage->version);
}
/* Returns a reference to the cached cast of `tensor` to dtype, or NULL if there is none. */
static opd_tensor *opdi_cast_find(opd_scalar_type dtype, const opd_tensor *tensor) {
    const opdi_cast *other;
    opd_tensor *cast = NULL;
    opdi_lock(&opdi_casts.lock);
    for (other = *opdi_cast_chain(tensor); other && !opdi_cast_fits(other, dtype, tensor); other = other->next) { }
    if (other) { cast = opdi_keep(other->cast); }
    opdi_unlock(&opdi_casts.lock);
    return cast;
}
/* Adds `cast` to the cache: `tensor`, cast when its version was `version`.  If the cache has an older cast of the
   tensor that is no longer valid, replaces it.  Returns 0, or -1 if memory runs out. */
static int opdi_cast_add(opd_tensor *tensor, opd_tensor *cast, uint32_t version) {
    opdi_cast *other = (opdi_cast *)opdi_alloc(sizeof *other), **at;
    if (!other) { return -1; }
    other->source = opdi_keep(tensor);
    other->cast = opdi_keep(cast);
    other->data = tensor->data;
    other->version = version;
    opdi_lock(&opdi_casts.lock);
    for (at = opdi_cast_chain(tensor); *at && ((*at)->source != tensor || (*at)->cast->dtype != cast->dtype);
         at = &(*at)->next) { }
    opdi_cast *old = *at;
    other->next = old ? old->next : NULL;
    *at = other;
    OPDI_STORE(&opdi_casts.n, opdi_casts.n + !old);
    opdi_unlock(&opdi_casts.lock);
    if (old) { opdi_cast_free(old); }
    return 0;
}

static bool opdi_cast_castable(const opd_tensor *tensor) {
    return tensor && opd_dtype_is_floating((opd_scalar_type)tensor->dtype) && tensor->dtype != OPD_FLOAT64;
}
/* Returns the device whose autocast regions apply to `tensor`: its own device or, for a fake tensor, the device that it
   stands for. */
OPDI_INTERNAL int opdi_cast_device(const opd_tensor *tensor) {
    return tensor->backend == OPD_META ? (int)opd_tensor_device(tensor).type : tensor->backend;
}
static opd_tensor *opdi_cast_make(opd_scalar_type dtype, opd_tensor *tensor) {
    opd_value values[7];
    values[0] = opd_value_tensor(tensor);
    values[1] = opd_value_int(dtype);
    for (int i = 2; i < 7; i++) { values[i] = opd_value_none(); }
    values[5] = opd_value_bool(false);
    return opd_call_op(opd_op_builtin(OPDI_BY_NUMBER(_to_copy)), values, 7);
}
/* Returns true if the cast of `tensor` to `dtype` may be cached: `dtype` is the region's dtype, and the tensor is a
   float32 leaf that requires grad.  Casts under transforms are not cached, because transforms differentiate with
   respect to aliases of weights. */
static bool opdi_cast_cacheable(const opdi_thread *thread, opd_scalar_type dtype, const opd_tensor *tensor) {
    return thread->state.autocast && !opdi_autocast_here(thread)->no_cache && !thread->state.inference &&
        !thread->state.forward && tensor->dtype == OPD_FLOAT32 && dtype == opdi_autocast_dtype_of(thread,
        opdi_cast_device(tensor)) && (OPDI_LOAD(&tensor->flags) & (OPDI_REQUIRES_GRAD | OPDI_IS_VIEW)) ==
        OPDI_REQUIRES_GRAD && !tensor->grad_fn && !(tensor->functionality & ~OPDI_TENSOR_KEYS);
}

opd_tensor *opd_autocast_cast(opd_scalar_type dtype, opd_tensor *tensor) {
    opdi_thread *thread = opdi_self();
    opd_tensor *cast;
    if (opdi_is_none(tensor, "opd_autocast_cast")) { return NULL; }
    if (!opdi_cast_castable(tensor) || tensor->dtype == (int32_t)dtype) { return tensor; }
    if (!opdi_cast_cacheable(thread, dtype, tensor)) { return opdi_cast_make(dtype, tensor); }
    if ((cast = opdi_cast_find(dtype, tensor)) != NULL) { return opdi_own(cast); }
    uint32_t version = OPDI_LOAD(&tensor->storage->version);
    int16_t no_grad = thread->state.no_grad;
    thread->state.no_grad = 0;
    cast = opdi_cast_make(dtype, tensor);
    thread->state.no_grad = no_grad;
    if (!cast || (cast->functionality & ~OPDI_TENSOR_KEYS) || cast->backend != tensor->backend) { return cast; }
    return opdi_cast_add(tensor, cast, version) ? NULL : cast;
}

//== policies ==========================================================================================================

static int opdi_autocast_device(const opd_call *call) { return call->slot - OPDI_AUTOCAST_SLOT; }
OPDI_INTERNAL bool opdi_autocast_eligible(const opd_tensor *tensor, int device) {
    const int its = opdi_cast_castable(tensor) ? opdi_cast_device(tensor) : -1;
    return its == device || (its == OPD_XLA && device == OPD_CUDA);
}

/* Runs the call again below the autocast keys, with the arguments `args`, which have the types of the call's own
   arguments.  Returns 0, or -1 and sets an error. */
static int opdi_autocast_again(opd_call *call, const opd_value *args) {
    opdi_thread *thread = call->th;
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    opdi_arg_keys sets;
    const opdi_state was = thread->state;
    opd_call other;
    if (OPDI_UNLIKELY(thread->error != OPD_OK) || (!table && !(table = opdi_table_make(call->op))) ||
        opdi_arg_keys_of(&sets, call->op, args) < 0) { return -1; }
    other.op = call->op;
    other.args = args;
    other.rets = call->rets;
    other.targets = NULL;
    thread->state.allow &= OPD_BIT_OF(OPD_F_AUTOCAST) - 1;
    if (call->keys.functionality & OPDI_BACK_BIT) { opdi_back_keys(&thread->state); }
    const opdi_slot *slot = opdi_find_slot(thread, &other, table, &sets);
    thread->state.include = was.include;
    thread->state.allow = was.allow;
    int rc = opdi_invoke(thread, &other, slot);
    call->filled = other.filled;
    call->owned = other.owned;
    call->cursor = other.cursor;
    return rc;
}

/* Replaces *value, a list of tensors, by a new list in which eligible tensors are cast to `dtype`.  Returns 0, or -1
   and sets an error. */
static int opdi_autocast_cast_list(opd_value *value, int device, opd_scalar_type dtype) {
    opd_tensor **list = NULL;
    for (int32_t k = 0; k < value->n; k++) {
        opd_tensor *tensor = value->u.tensors[k], *cast;
        if (!opdi_autocast_eligible(tensor, device) || tensor->dtype == (int32_t)dtype) { continue; }
        if (!list) {
            if (!(list = (opd_tensor **)opdi_scope_alloc((size_t)value->n * sizeof *list))) { return -1; }
            memcpy(list, value->u.tensors, (size_t)value->n * sizeof *list);
        }
        if (!(cast = opd_autocast_cast(dtype, tensor))) { return -1; }
        list[k] = cast;
    }
    if (list) { value->u.tensors = list; }
    return 0;
}
/* Runs the call below the autocast keys, with all eligible arguments cast to `dtype`.  Arguments that the operator
   writes are not cast.  Returns 0, or -1 and sets an error. */
static int opdi_autocast_cast(opd_call *call, opd_scalar_type dtype) {
    const opd_op *op = call->op;
    const int device = opdi_autocast_device(call);
    opd_value args[OPD_MAX_ARGS];
    memcpy(args, call->args, (size_t)op->nargs * sizeof args[0]);
    opdi_autocast_allow(call->th, false);
    for (uint64_t mask = (op->tensor_args | op->list_args) & ~op->written_args; mask; mask &= mask - 1) {
        opd_value *value = &args[opdi_low_bit(mask)];
        if (value->tag == OPD_TAG_TENSORS && opdi_autocast_cast_list(value, device, dtype)) { return -1; }
        if (value->tag == OPD_TAG_TENSOR && opdi_autocast_eligible(value->u.t, device) &&
            value->u.t->dtype != (int32_t)dtype && !(value->u.t = opd_autocast_cast(dtype, value->u.t))) {
            return -1;
        }
    }
    return opdi_autocast_again(call, args);
}

static int opdi_autocast_lower(opd_call *call) {
    return opdi_autocast_cast(call, opdi_autocast_dtype_of(call->th, opdi_autocast_device(call)));
}
static int opdi_autocast_fp32(opd_call *call) { return opdi_autocast_cast(call, OPD_FLOAT32); }

static bool opdi_autocast_first(const opd_call *call) {
    return call->op->nargs > 0 && call->args[0].tag == OPD_TAG_TENSOR &&
           opdi_autocast_eligible(call->args[0].u.t, opdi_autocast_device(call));
}
static int opdi_autocast_set_dtype(opd_call *call) {
    const opd_op *op = call->op;
    opd_value args[OPD_MAX_ARGS];
    const int i = opdi_autocast_first(call) ? opdi_arg_index(op->schema, "dtype", 5) : -1;
    opdi_autocast_allow(call->th, false);
    if (i < 0 || call->args[i].tag != OPD_TAG_NONE) { return opdi_autocast_again(call, call->args); }
    memcpy(args, call->args, (size_t)op->nargs * sizeof args[0]);
    args[i] = opd_value_int(OPD_FLOAT32);
    return opdi_autocast_again(call, args);
}

/* Returns the overload of `op` that has the arguments of `op`, followed by a dtype.  Returns NULL and sets an error if
   there is none. */
static opd_op *opdi_autocast_overload(const opd_op *op) {
    opd_overloads *all = opdi_overloads_quiet(op->base_name);
    opd_op *other;
    int k;
    for (int i = 0; all && (other = opd_overloads_at(all, i)) != NULL; i++) {
        const opd_schema *schema = other->schema;
        for (k = 0; k < op->nargs && k < schema->nargs && strcmp(schema->args[k].name, op->schema->args[k].name) == 0;
             k++) { }
        if (k == op->nargs && schema->nargs == k + 1 && strcmp(schema->args[k].name, "dtype") == 0) { return other; }
    }
    if (opd_ok()) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "autocast needs an overload of %s with a dtype argument, but there is none",
                       op->name);
    }
    return NULL;
}
static int opdi_autocast_append_dtype(opd_call *call) {
    opd_op *other = opdi_autocast_overload(call->op);
    opd_value args[OPD_MAX_ARGS + 1], rets[OPDI_MAX_RETURNS];
    const int nargs = call->op->nargs;
    if (!other) { return -1; }
    memcpy(args, call->args, (size_t)nargs * sizeof args[0]);
    args[nargs] = opdi_autocast_first(call) ? opd_value_int(OPD_FLOAT32)
        : args[0].tag == OPD_TAG_TENSOR ? opd_value_int(args[0].u.t->dtype) : opd_value_none();
    opdi_autocast_allow(call->th, false);
    if (opd_call_all(other, rets, args, nargs + 1)) { return -1; }
    for (int i = 0; i < other->nrets; i++) { if (opd_return_value(call, rets[i])) { return -1; } }
    return 0;
}

/* Sets *dtype to the wider of *dtype and the dtype of `tensor`, as at::autocast::prioritize does.  Returns 0, or -1 and
   sets an error. */
static int opdi_autocast_widen(const opdi_thread *thread, opd_scalar_type *dtype, const opd_tensor *tensor,
                               int device) {
    const opd_scalar_type lower = opdi_autocast_dtype_of(thread, device);
    const opd_scalar_type next = (opd_scalar_type)tensor->dtype;
    if (*dtype == OPD_FLOAT32 || next == OPD_FLOAT32) {
        *dtype = OPD_FLOAT32;
        return 0;
    }
    if (*dtype == lower && next == lower) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "Unexpected floating ScalarType in at::autocast::prioritize: %s and %s in a "
                    "region of %s", opd_dtype_name(*dtype), opd_dtype_name(next), opd_dtype_name(lower));
}
opd_scalar_type opd_autocast_promote(opd_scalar_type dtype, opd_tensor *const *tensors, int count) {
    const opdi_thread *thread = opdi_self();
    if (!opd_ok() || opdi_any_dead(tensors, count, "opd_autocast_promote")) { return OPD_DTYPE_NONE; }
    if (dtype == OPD_FLOAT64) {
        (void)opd_fail(OPD_ERROR_DTYPE, "promote type is double in at::autocast::prioritize");
        return OPD_DTYPE_NONE;
    }
    for (int i = 0; tensors && i < count; i++) {
        const opd_tensor *tensor = tensors[i];
        if (opdi_cast_castable(tensor) && opdi_autocast_widen(thread, &dtype, tensor, opdi_cast_device(tensor))) {
            return OPD_DTYPE_NONE;
        }
    }
    return dtype;
}
static int opdi_autocast_promote(opd_call *call) {
    const opdi_thread *thread = call->th;
    const int device = opdi_autocast_device(call);
    opd_scalar_type dtype = opdi_autocast_dtype_of(thread, device);
    for (uint64_t mask = call->op->tensor_args | call->op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        const int32_t count = value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR;
        for (int32_t k = 0; k < count; k++) {
            const opd_tensor *tensor = value->tag == OPD_TAG_TENSORS ? value->u.tensors[k] : value->u.t;
            if (opdi_autocast_eligible(tensor, device) && opdi_autocast_widen(thread, &dtype, tensor, device)) {
                return -1;
            }
        }
    }
    return opdi_autocast_cast(call, dtype);
}

OPDI_COLD_BEGIN
static int opdi_autocast_banned(opd_call *call) {
    char safe[300];
    const bool is_safe = snprintf(safe, sizeof safe, "%s_with_logits", call->op->base_name) < (int)sizeof safe &&
        opd_find_quiet(safe) != NULL;
    return opd_fail(OPD_ERROR_DTYPE, "%s is unsafe to autocast: its result may leave the range of the lower "
                    "dtype.%s%s%s Or call it in a region where autocast is disabled (enabled is false), with arguments "
                    "cast to float32.", call->op->name, is_safe ? " Combine it with the sigmoid before it: " : "",
                    is_safe ? safe : "", is_safe ? " is safe to autocast." : "");
}

static const opd_kernel opdi_policies[OPDI_POLICIES] = {        /* indexed by policy */
    NULL, opd_fallthrough, opdi_autocast_lower, opdi_autocast_fp32, opdi_autocast_set_dtype, opdi_autocast_promote,
    opdi_autocast_banned, opdi_autocast_append_dtype};
/* opdi_policies.  In a lean program it is NULL until opd_autocast_begin is called, so that a program without regions
   does not contain the kernels. */
#if defined(OPD_LEAN)
static const opd_kernel *opdi_on_policies;
#else
static const opd_kernel *opdi_on_policies = opdi_policies;
#endif
static void opdi_policies_reach(void) { OPDI_PUBLISH(&opdi_on_policies, &opdi_policies[0]); }

static int opdi_policy_on(opd_autocast policy, int device) {
    const int place = (int)policy;
    return device == OPD_CPU && place >> 4 ? place >> 4 : place & 15;
}
/* Returns the policy of a built-in operator for a device, from its descriptor. */
static int opdi_policy_of(const opd_op *op, int device) {
    const opdi_card *card = op->card;
    return card && !card->base && opdi_autocast_default(device) != OPD_DTYPE_NONE
        ? opdi_policy_on(card->desc.autocast, device) : 0;
}
/* The kernel of all operators whose descriptor has a policy. */
static int opdi_policy_kernel(opd_call *call) {
    const opd_kernel *const kernels = OPDI_ACQUIRE(&opdi_on_policies);
    const int place = opdi_policy_of(call->op, opdi_autocast_device(call));
    return kernels && place > OPD_AUTOCAST_KEEP ? kernels[place](call)
        : opd_fail(OPD_ERROR_KERNEL, "%s: a program with OPD_LEAN must call opd_autocast_begin before it calls an "
                   "operator at an autocast key", call->op->name);
}
static opdi_kernel opdi_by_policy = {
    opdi_policy_kernel, NULL, NULL, 0, false, NULL, {OPDI_TEXT("by `autocast` of its opd_op_desc"), 0}, NULL, NULL};
/* Returns the autocast kernel for a device, according to the policy in the operator's descriptor, or NULL if the
   operator has no policy. */
OPDI_INTERNAL opdi_kernel *opdi_autocast_policy(const opd_op *op, int device) {
    return opdi_policy_of(op, device) > OPD_AUTOCAST_KEEP ? &opdi_by_policy : NULL;
}

/* Registers the kernel of `policy` at the autocast key of `device`; if `device` is OPD_BACKEND_COUNT, at the autocast
   keys of all devices.  Returns 0.  On failure, returns -1, sets an error, and registers nothing. */
int opd_autocast_register(opd_library *lib, const char *name, opd_backend device, opd_autocast policy) {
    char qualified[256];
    int count = 0;
    if (!opdi_library_usable(lib, "opd_autocast_register")) { return -1; }
    if (!name) { return opd_fail(OPD_ERROR_REGISTER, "opd_autocast_register: the name is NULL"); }
    const opdi_registration *before = lib->registrations;
    if (opdi_check_policy(policy) || opdi_check_name(name) ||
        opdi_qualify(lib, name, "operator name", qualified, sizeof qualified)) { return opdi_library_error(lib); }
    opdi_builtins_make(qualified);
    for (int known = 0; opd_ok() && known < OPD_BACKEND_COUNT; known++) {
        const int place = opdi_policy_on(policy, known);
        if (device != OPD_BACKEND_COUNT && (int)device != known) { continue; }
        if (place == OPD_AUTOCAST_FORGOTTEN || opdi_autocast_default(known) == OPD_DTYPE_NONE) { continue; }
        if (opdi_impl_at(lib, qualified, OPDI_AUTOCAST_SLOT + known, opdi_policies[place], NULL, NULL)) {
            opdi_library_undo(lib, before);
            return opdi_library_error(lib);
        }
        count++;
    }
    if (opd_ok() && count == 0) {
        (void)opd_fail(OPD_ERROR_REGISTER, "opd_autocast_register: no policy was given, or none of the devices "
                       "supports autocast");
    }
    return count > 0 ? 0 : opdi_library_error(lib);
}
OPDI_COLD_END

//== custom functions ==================================================================================================

OPDI_COLD_BEGIN
/* Returns copies of a custom function's inputs in which eligible tensors are cast to `dtype`.  They belong to the
   innermost scope.  Returns NULL and sets an error on failure. */
static opd_value *opdi_custom_cast(const opd_context *ctx, int device, opd_scalar_type dtype) {
    opd_value *cast = (opd_value *)opdi_scope_alloc((size_t)(ctx->ninputs + 1) * sizeof *cast);
    for (int i = 0; cast && i < ctx->ninputs; i++) {
        cast[i] = ctx->inputs[i];
        if (cast[i].tag == OPD_TAG_TENSORS && opdi_autocast_cast_list(&cast[i], device, dtype)) { return NULL; }
        if (cast[i].tag != OPD_TAG_TENSOR || !opdi_autocast_eligible(cast[i].u.t, device)) { continue; }
        if (!(cast[i].u.t = opd_autocast_cast(dtype, cast[i].u.t))) { return NULL; }
    }
    return cast;
}
/* Runs `forward` of a custom function and stores the state of autocast for opd_custom_bwd.  If `cast_inputs` is a dtype
   and a region is on, `forward` gets inputs cast to this dtype, and autocast is off while it runs.  Returns 0, or -1
   and sets an error. */
int opd_custom_fwd(opd_context *ctx, opd_backend device, opd_scalar_type cast_inputs, opd_setup_fn forward) {
    int rc = -1;
    if (!opd_ok()) { return -1; }
    if (!ctx || !ctx->in_forward || !forward || (unsigned)device >= OPD_BACKEND_COUNT ||
        opdi_autocast_default((int)device) == OPD_DTYPE_NONE) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_custom_fwd must be called inside of a forward, with its context, a "
                        "device that supports autocast, and a function");
    }
    ctx->amp = true;
    ctx->amp_device = device;
    ctx->amp_dtype = opd_autocast_dtype(device);
    ctx->amp_on = opd_autocast_enabled(device);
    if (cast_inputs == OPD_DTYPE_NONE) { return forward(ctx); }
    if (!ctx->amp_on) { return forward(ctx); }
    ctx->amp_on = false;
    const opd_value *inputs = ctx->inputs;
    opd_autocast_region region = opd_autocast_begin(device, OPD_DTYPE_NONE, false, 0);
    if (region.open && (ctx->inputs = opdi_custom_cast(ctx, (int)device, cast_inputs)) != NULL) { rc = forward(ctx); }
    ctx->inputs = inputs;
    opd_autocast_end(&region);
    return rc;
}
int opd_custom_bwd(opd_backward_call *bw, opd_backward_fn backward) {
    const opd_context *ctx = bw ? opd_bw_context(bw) : NULL;
    if (!opd_ok()) { return -1; }
    if (!ctx || !ctx->amp || !backward) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "opd_custom_bwd: the forward of this function was not called through "
                        "opd_custom_fwd, or the function is NULL");
    }
    opd_autocast_region region = opd_autocast_begin(ctx->amp_device, ctx->amp_dtype, ctx->amp_on, -1);
    int rc = region.open ? backward(bw) : -1;
    opd_autocast_end(&region);
    return rc;
}
OPDI_COLD_END

/* The kernel at the autocast keys of a table: runs the registered kernel, or, if autocast is off for the device, runs
   the call below the autocast keys.  If the program calls the operator at exactly this key, the registered kernel also
   runs without a region.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_autocast_kernel(opd_call *call) {
    const opdi_kernel *kernel = (const opdi_kernel *)call->user;
    const opdi_thread *thread = call->th;
    if (opdi_autocast_allowed(thread) && !opdi_autocast_is_on(thread, opdi_autocast_device(call))) {
        return opdi_autocast_again(call, call->args);
    }
    call->user = kernel->user;
    return kernel->fn(call);
}
/* The kernel at the autocast key of meta tensors: runs the autocast kernel of the device that the fake tensors among
   the arguments stand for.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_autocast_of_fakes(opd_call *call) {
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    const opdi_slot *slot = NULL;
    int device = OPD_CPU;
    const int was = call->slot;
    for (uint64_t mask = call->th->innermost.fake ? call->op->tensor_args | call->op->list_args : 0; mask;
         mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        for (int32_t k = 0; k < (value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR); k++) {
            const opd_tensor *tensor = value->tag == OPD_TAG_TENSORS ? value->u.tensors[k] : value->u.t;
            const int its = tensor ? opdi_cast_device(tensor) : OPD_META;
            if (its == OPD_META) { continue; }
            device = OPDI_MAX(device, its);
            slot = table ? &table->slots[OPDI_AUTOCAST_SLOT + device] : NULL;
        }
    }
    if (!slot || slot->fn == opd_fallthrough) { return opdi_autocast_again(call, call->args); }
    call->slot = OPDI_AUTOCAST_SLOT + device;
    call->user = slot->user;
    int rc = slot->fn(call);
    call->slot = was;
    return rc;
}
