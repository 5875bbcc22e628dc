#include "dispatch.h"

//== inside a kernel ===================================================================================================

opd_op *opd_call_operator(const opd_call *call) { return call->op; }
opd_keyset opd_call_keys(const opd_call *call) { return call->keys; }
void *opd_call_user(const opd_call *call) { return call->user; }
int opd_call_nargs(const opd_call *call) { return call->op->nargs; }
const opd_value *opd_call_args(const opd_call *call) { return call->args; }
opd_value *opd_call_rets(opd_call *call) { return call->rets; }

/* Returns argument number `i` if it has this tag, or NULL if it is None.  If it has another tag, returns NULL and sets
   an error. */
static inline const opd_value *opdi_arg_of(const opd_call *call, int i, int32_t tag) {
    if (OPDI_UNLIKELY((unsigned)i >= (unsigned)call->op->nargs)) {
        (void)opd_fail(OPD_ERROR_KERNEL, "the kernel reads argument %d, but the operator has %d argument(s), counted "
                       "from 0", i, call->op->nargs);
        return NULL;
    }
    if (OPDI_LIKELY(call->args[i].tag == tag)) { return &call->args[i]; }
    if (call->args[i].tag != OPD_TAG_NONE) {
        (void)opd_fail(OPD_ERROR_KERNEL, "the kernel reads argument %d as another type than %s, its type in this "
                       "call", i, opdi_value_kind(&call->args[i]));
    }
    return NULL;
}

opd_tensor *opd_arg_tensor(const opd_call *call, int i) {
    const opd_value *value = opdi_arg_of(call, i, OPD_TAG_TENSOR);
    return value ? value->u.t : NULL;
}
int64_t opd_arg_int(const opd_call *call, int i) {
    const opd_value *value = opdi_arg_of(call, i, OPD_TAG_INT);
    return value ? value->u.i : 0;
}
double opd_arg_double(const opd_call *call, int i) {
    const opd_value *value = opdi_arg_of(call, i, OPD_TAG_FLOAT);
    return value ? value->u.d : 0;
}
bool opd_arg_bool(const opd_call *call, int i) {
    const opd_value *value = opdi_arg_of(call, i, OPD_TAG_BOOL);
    return value ? value->u.i != 0 : false;
}
opd_value opd_arg_value(const opd_call *call, int i) {
    return (unsigned)i < (unsigned)call->op->nargs ? call->args[i] : opd_value_none();
}
bool opd_arg_is_none(const opd_call *call, int i) { return opd_arg_value(call, i).tag == OPD_TAG_NONE; }
const char *opd_arg_str(const opd_call *call, int i) {
    const opd_value *value = opdi_arg_of(call, i, OPD_TAG_STR);
    return value ? value->u.s : NULL;
}
/* Returns argument number `i` as opdi_arg_of does, for the tag of a list.  Returns NULL and sets an error if the list
   has elements, but no memory. */
static const opd_value *opdi_arg_list(const opd_call *call, int i, int32_t tag) {
    const opd_value *value = opdi_arg_of(call, i, tag);
    if (!value || OPDI_LIKELY(value->n >= 0 && (value->n == 0 || value->u.object))) { return value; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "argument '%s' is a list of %d elements%s", call->op->schema->args[i].name,
                   value->n, value->u.object ? "" : ", but its pointer is NULL");
    return NULL;
}
opd_ints opd_arg_ints(const opd_call *call, int i) {
    const opd_value *value = opdi_arg_list(call, i, OPD_TAG_INTS);
    return value ? opd_ints_of(value->u.ints, value->n) : opd_ints_of(NULL, 0);
}
opd_doubles opd_arg_doubles(const opd_call *call, int i) {
    const opd_value *value = opdi_arg_list(call, i, OPD_TAG_FLOATS);
    return value ? opd_doubles_of(value->u.floats, value->n) : opd_doubles_of(NULL, 0);
}
opd_tensors opd_arg_tensors(const opd_call *call, int i) {
    const opd_value *value = opdi_arg_list(call, i, OPD_TAG_TENSORS);
    return value ? opd_tensors_of(value->u.tensors, value->n) : opd_tensors_of(NULL, 0);
}
opd_scalar_type opd_arg_dtype(const opd_call *call, int i, opd_scalar_type if_none) {
    const opd_value *value = opdi_arg_of(call, i, OPD_TAG_INT);
    if (!value) { return if_none; }
    if (value->u.i < 0 || value->u.i > OPD_INT_BLOCKS_LAST || !opdi_element_size((int)value->u.i)) {
        if (!opd_ok()) { return if_none; }
        (void)opd_fail(OPD_ERROR_DTYPE, "argument '%s': %lld is not a dtype", call->op->schema->args[i].name,
                       (long long)value->u.i);
        if (call->op->schema->args[i].keyword_only) { (void)opdi_fail_overload(call->op, call->args, i + 1); }
        return if_none;
    }
    const opd_scalar_type dtype = (opd_scalar_type)value->u.i;
    return OPDI_UNLIKELY(opdi_is_stored_dtype((int)dtype)) && opdi_stored_dtype_check(call, dtype) ? if_none : dtype;
}
opd_device opd_arg_device(const opd_call *call, int i, opd_device if_none) {
    const opd_value *value = opdi_arg_of(call, i, OPD_TAG_DEVICE);
    return value ? value->u.device : if_none;
}
