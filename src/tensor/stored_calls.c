#include "tensor.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>stored_calls calls with tensors of stored dtypes; converting numbers to their elements
//
//  The kernels that run instead of built-in kernels for tensors of stored dtypes (see >>stored_dtypes).  To move
//  elements, they call the kernel for integers of the same size.  To compute, they convert to a wider dtype and call
//  the operator again.
//----------------------------------------------------------------------------------------------------------------------

//== numbers as elements ===============================================================================================

/* Returns the largest finite number of a floating type. */
OPDI_INTERNAL double opdi_float_top(opd_scalar_type dtype) {
    switch (dtype) {
        case OPD_FLOAT16: return 65504.0;
        case OPD_BFLOAT16: return 255 * ldexp(1, 120);
        case OPD_FLOAT32: return (double)FLT_MAX;
        case OPD_FLOAT8_E5M2: case OPD_FLOAT8_E5M2FNUZ: return 57344.0;
        case OPD_FLOAT8_E4M3FN: return 448.0;
        case OPD_FLOAT8_E4M3FNUZ: return 240.0;
        case OPD_FLOAT8_E8M0FNU: return ldexp(1, 127);
        default: return DBL_MAX;
    }
}
/* Returns true if a number can be cast to a stored dtype, by the rules of c10::overflows.  For an unsigned dtype,
   negative integers are allowed, because they wrap around. */
OPDI_INTERNAL bool opdi_stored_fits(opd_value value, opd_scalar_type dtype) {
    const bool whole = value.tag == OPD_TAG_INT || value.tag == OPD_TAG_BOOL;
    const double re = value.tag == OPD_TAG_FLOAT ? value.u.d : value.tag == OPD_TAG_COMPLEX ? value.u.c[0]
        : (double)value.u.i;
    if (dtype == OPD_COMPLEX32) { return true; }
    if (value.tag == OPD_TAG_COMPLEX && (value.u.c[1] < 0 || value.u.c[1] > 0)) { return false; }
    if (opdi_is_bare_unsigned((int)dtype)) {
        const double top = ldexp(1, 8 * (int)opd_dtype_size(dtype));
        return whole ? dtype == OPD_UINT64 || fabs(re) < top : re >= 0 && re < top;
    }
    if (re != re) { return true; }
    if (isinf(re)) { return dtype == OPD_FLOAT8_E5M2; }
    return fabs(re) <= opdi_float_top(dtype) && (whole || dtype != OPD_FLOAT8_E8M0FNU || re >= ldexp(1, -127));
}
/* Converts a number to an element of a stored dtype and writes it to `out`, as opdi_element_of does for other dtypes.
   Returns 0, or -1 and sets an error if the number does not fit. */
OPDI_INTERNAL int opdi_stored_element_of(opd_value value, opd_scalar_type dtype, double *out /*[2]*/) {
    const bool whole = value.tag == OPD_TAG_INT || value.tag == OPD_TAG_BOOL;
    const double re = value.tag == OPD_TAG_FLOAT ? value.u.d : value.tag == OPD_TAG_COMPLEX ? value.u.c[0]
        : (double)value.u.i;
    const double pair[2] = {re, value.tag == OPD_TAG_COMPLEX ? value.u.c[1] : 0};
    out[0] = out[1] = 0;
    if (!opdi_stored_fits(value, dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "value cannot be converted to %s without overflow",
                        opd_dtype_name(dtype));
    }
    opdi_store_one(dtype == OPD_COMPLEX32 ? OPD_COMPLEX128 : whole ? OPD_INT64 : OPD_FLOAT64,
                   whole && dtype != OPD_COMPLEX32 ? (const void *)&value.u.i : pair, dtype, out);
    return 0;
}
//== calls with stored dtypes ==========================================================================================

/* Returns true if argument `i` is an index or mask, which is not an operand. */
static bool opdi_stored_selects(const opd_op *op, int i) {
    static const char *const names[] = {"index", "indices", "mask", "condition"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (strcmp(op->schema->args[i].name, names[k]) == 0) { return true; }
    }
    return false;
}

/* Facts about the operands of a call.  tensors[count]: a tensor for each dtype and rank in promotion.  first: the first
   operand of a stored dtype.  block: the first operand of a dtype in blocks.  dtypes: the set of stored dtypes.  mixed:
   there are several dtypes.  listed: the number of tensors in lists.  selects: an index or mask of a stored dtype. */
typedef struct opdi_stored_call {
    opd_tensor *tensors[3 * OPDI_DTYPES], *first, *block;
    int count;
    unsigned dtypes;
    bool mixed;
    int64_t listed;
    const opd_tensor *selects;
} opdi_stored_call;
static void opdi_stored_take(opdi_stored_call *stored, opd_tensor *tensor, bool selects) {
    if (!tensor) { return; }
    if (selects) {
        if (tensor->flags & OPDI_STORED) { stored->selects = tensor; }
        return;
    }
    if (tensor->flags & OPDI_STORED) {
        stored->dtypes |= opdi_stored_set(tensor->dtype);
        if (!stored->first) { stored->first = tensor; }
        if (!stored->block && opdi_is_block(tensor->dtype)) { stored->block = tensor; }
    }
    for (int k = 0; k < stored->count; k++) {
        const opd_tensor *other = stored->tensors[k];
        if (other->dtype != tensor->dtype) { stored->mixed = true; }
        else if ((other->ndim == 0) == (tensor->ndim == 0) && !((other->flags ^ tensor->flags) & OPDI_WRAPPED)) {
            return;
        }
    }
    if (stored->count < 3 * OPDI_DTYPES) { stored->tensors[stored->count++] = tensor; }
}
static void opdi_stored_look(opdi_stored_call *stored, const opd_call *call) {
    memset(stored, 0, sizeof *stored);
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *value = &call->args[i];
        const bool selects = opdi_stored_selects(call->op, i);
        if (value->tag == OPD_TAG_TENSOR) { opdi_stored_take(stored, value->u.t, selects); }
        for (int k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            opdi_stored_take(stored, value->u.tensors[k], selects);
        }
        if (value->tag == OPD_TAG_TENSORS) { stored->listed += value->n; }
    }
}

/* Returns true if a call has a value other than None and false for the argument `name`, such as a rounding mode. */
static bool opdi_stored_has_arg(const opd_call *call, const char *name) {
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *value = &call->args[i];
        if (strcmp(call->op->schema->args[i].name, name) == 0) {
            return value->tag != OPD_TAG_NONE && (value->tag != OPD_TAG_BOOL || value->u.i);
        }
    }
    return false;
}
/* Returns a tensor over the memory of `tensor` with elements of another dtype of the same size, without history.
   Returns NULL and sets an error if that fails. */
static opd_tensor *opdi_stored_bits(const opd_tensor *tensor, opd_scalar_type dtype) {
    opd_tensor *bits = opdi_tensor_on(tensor->storage, tensor->data, tensor->dims, tensor->dims + tensor->ndim,
                                      tensor->ndim, dtype, tensor->backend);
    if (!bits) { return NULL; }
    opdi_share_storage(bits, tensor);
    return opdi_own(bits);
}

/* How the operands of a call are changed before it runs: converted, or read as integers of the same size. */
typedef struct opdi_stored_change {
    opd_scalar_type to;                           /* the dtype to which stored dtypes are converted; OPD_DTYPE_NONE: a
                                                     wider one */
    opd_scalar_type bits;                         /* the dtype as which elements are read after that; OPD_DTYPE_NONE:
                                                     their own dtype */
    opd_scalar_type common;                       /* the dtype to which all operands are converted first;
                                                     OPD_DTYPE_NONE: they are not */
    opd_scalar_type rounded;                      /* the dtype to which numbers are rounded; OPD_DTYPE_NONE: they are
                                                     not */
    bool floats, ordered;                         /* floats: integers become float32; ordered: uint64 becomes int64, in
                                                     the same order */
    opd_value args[OPD_MAX_ARGS];
    opd_tensor **list;                            /* memory for the tensors of all lists */
} opdi_stored_change;
/* Returns a dtype that holds all numbers of a stored dtype.  If `floats` is true, returns float32 for integers. */
static opd_scalar_type opdi_stored_wider(int dtype, bool floats) {
    return dtype == OPD_COMPLEX32 ? OPD_COMPLEX64 : floats || opdi_is_float8(dtype) ? OPD_FLOAT32 : OPD_INT64;
}
/* Inverts the highest bit of each int64: the addition overflows, and wraps around. */
static opd_tensor *opdi_stored_turned(opd_tensor *tensor) { return opd_add_Scalar(tensor, opd_value_int(INT64_MIN)); }
static opd_tensor *opdi_stored_changed(const opdi_stored_change *change, opd_tensor *tensor) {
    if (tensor && change->common != OPD_DTYPE_NONE && !(tensor = opd_to_dtype(tensor, change->common))) { return NULL; }
    const bool stored = tensor && tensor->flags & OPDI_STORED;
    if (!tensor || (!stored && change->bits == OPD_DTYPE_NONE)) { return tensor; }
    if (change->to != OPD_DTYPE_NONE) { tensor = opd_to_dtype(tensor, change->to); }
    else if (stored) { tensor = opd_to_dtype(tensor, opdi_stored_wider(tensor->dtype, change->floats)); }
    if (tensor && change->ordered) { return opdi_stored_turned(tensor); }
    return tensor && change->bits != OPD_DTYPE_NONE ? opdi_stored_bits(tensor, change->bits) : tensor;
}
/* Returns true if a call has a number for a Scalar argument other than alpha.  If `fraction` is true, only floats
   count. */
static bool opdi_stored_number(const opd_call *call, bool fraction) {
    for (int i = 0; i < call->op->nargs; i++) {
        const opdi_arg *arg = &call->op->schema->args[i];
        const int32_t tag = call->args[i].tag;
        if (opdi_strip_optional(arg->type)->kind != OPDI_TYPE_NUMBER || strcmp(arg->name, "alpha") == 0) { continue; }
        if (fraction ? tag == OPD_TAG_FLOAT : tag != OPD_TAG_NONE) { return true; }
    }
    return false;
}
/* Replaces *number, an operand, by an integer: the bits of an element of dtype change->to that has the value *number.
   Returns 0, or -1 and sets an error. */
static int opdi_stored_number_bits(const opdi_stored_change *change, const opd_call *call, opd_value *number) {
    if (opdi_is_bare_unsigned((int)change->to) && number->tag != OPD_TAG_INT && number->tag != OPD_TAG_BOOL) {
        return opdi_stored_refuse(call->op, "cpu", (int)change->to);
    }
    opd_tensor bits;
    double element[2];
    if (opdi_stored_element_of(*number, change->to, element)) { return -1; }
    memset(&bits, 0, sizeof bits);
    bits.dtype = (int32_t)change->bits;
    bits.data = (char *)element;
    *number = opd_value_int(opdi_element_i64(&bits, 0));
    return 0;
}
/* Rounds *number to the value that an element of dtype change->rounded would have.  Returns 0, or -1 and sets an error.
   */
static int opdi_stored_number_rounded(const opdi_stored_change *change, opd_value *number) {
    const int64_t none = 0;
    if (number->tag == OPD_TAG_INT && opdi_is_bare_unsigned((int)change->rounded) &&
        (number->u.i < 0 || !opdi_stored_fits(*number, change->rounded))) {
        return opd_fail(OPD_ERROR_DTYPE, "value cannot be converted to %s without overflow",
                        opd_dtype_name(change->rounded));
    }
    const opd_scalar_type wide = change->rounded == OPD_COMPLEX32 ? OPD_COMPLEX128
        : opdi_stored_wider((int)change->rounded, false);
    opd_tensor *one = opd_full(opd_ints_of(&none, 0), *number, change->rounded);
    one = one ? opd_to_dtype(one, wide) : NULL;
    if (!one) { return -1; }
    *number = wide == OPD_INT64 ? opd_value_int(opd_item_i64(one))
        : wide == OPD_COMPLEX128 && opd_data(one) ? opd_value_complex((const double *)opd_data(one))
        : opd_value_double(opd_item_f64(one));
    return opd_ok() ? 0 : -1;
}
/* Fills change->args with the changed arguments of call.  Returns 0, or -1 and sets an error. */
static int opdi_stored_args(opdi_stored_change *change, const opd_call *call) {
    opd_tensor **list = change->list;
    for (int i = 0; i < call->op->nargs; i++) {
        opd_value *value = &change->args[i];
        *value = call->args[i];
        if (opdi_stored_selects(call->op, i)) { continue; }
        const bool number = value->tag != OPD_TAG_NONE &&
            opdi_strip_optional(call->op->schema->args[i].type)->kind == OPDI_TYPE_NUMBER;
        if (number && change->bits != OPD_DTYPE_NONE && opdi_stored_number_bits(change, call, value)) { return -1; }
        if (number && change->rounded != OPD_DTYPE_NONE && opdi_stored_number_rounded(change, value)) { return -1; }
        if (value->tag == OPD_TAG_TENSOR && !(value->u.t = opdi_stored_changed(change, value->u.t))) { return -1; }
        if (value->tag != OPD_TAG_TENSORS) { continue; }
        for (int k = 0; k < value->n; k++) {
            list[k] = opdi_stored_changed(change, value->u.tensors[k]);
            if (!list[k] && value->u.tensors[k]) { return -1; }
        }
        value->u.tensors = list;
        list += value->n;
    }
    return 0;
}

/* Runs a call of an operator that only moves elements, with the kernel for integers of the same size as `dtype`.  Then
   gives the results `dtype`.  Returns 0 or -1. */
static int opdi_stored_move(opd_call *call, const opdi_slot *slot, opdi_stored_change *change, opd_scalar_type dtype) {
    const size_t size = opd_dtype_size(dtype);
    const opd_value *given = call->args;
    opd_tensor **targets = call->targets;
    change->to = dtype;
    change->bits = size == 1 ? OPD_UINT8 : size == 2 ? OPD_INT16 : size == 4 ? OPD_INT32 : OPD_INT64;
    if (opdi_stored_args(change, call)) { return -1; }
    call->args = change->args;
    call->targets = NULL;
    int rc = slot->fn(call);
    call->args = given;
    call->targets = targets;
    for (int i = 0; i < call->op->nrets && rc == 0; i++) {
        opd_value *value = &call->rets[i];
        if (!(call->filled >> i & 1) || value->tag != OPD_TAG_TENSOR || value->u.t->dtype != (int32_t)change->bits) {
            continue;
        }
        for (int k = 0; k < call->op->nargs; k++) {          /* a changed argument becomes the argument */
            if (given[k].tag == OPD_TAG_TENSOR && change->args[k].u.t == value->u.t) { value->u.t = given[k].u.t; }
        }
        value->u.t->dtype = (int32_t)dtype;
        value->u.t->flags |= OPDI_STORED;
    }
    return rc;
}
/* Runs a call with operands changed as `change` says.  Converts the first result to dtype `back`, unless that is
   OPD_DTYPE_NONE.  Returns 0, or -1 and sets an error. */
static int opdi_stored_compute(opd_call *call, opdi_stored_change *change, opd_scalar_type back) {
    opd_value rets[OPDI_MAX_RETURNS];
    if (opdi_schema_written(call->op->schema, call->args) || opdi_stored_args(change, call) ||
        opd_call_all(call->op, rets, change->args, call->op->nargs)) {
        return opd_ok() ? opdi_stored_refuse(call->op, "cpu", back) : -1;
    }
    const opd_scalar_type wide = back == OPD_DTYPE_NONE ? back : opdi_stored_wider((int)back, false);
    for (int i = 0; i < call->op->nrets; i++) {
        opd_value value = rets[i];
        if (value.tag == OPD_TAG_TENSOR && i == 0 && wide != OPD_DTYPE_NONE && value.u.t->dtype == (int32_t)wide) {
            if (change->ordered) { value.u.t = opdi_stored_turned(value.u.t); }
            value.u.t = value.u.t ? opd_to_dtype(value.u.t, back) : NULL;
        } else if (value.tag == OPD_TAG_TENSOR && back == OPD_COMPLEX32 && value.u.t->dtype == OPD_FLOAT32) {
            value.u.t = opd_to_dtype(value.u.t, OPD_FLOAT16);
        }
        if ((value.tag == OPD_TAG_TENSOR && !value.u.t) || opd_return_value(call, value)) { return -1; }
    }
    return 0;
}

/* Runs a call whose operands have different dtypes, at least one of them stored, in the dtype to which they are
   promoted.  Returns 0, or -1 and sets an error.  Returns 1 without running the call if that dtype is itself a stored
   dtype. */
static int opdi_stored_mixed(opd_call *call, const opdi_stored_call *stored, opdi_stored_change *change) {
    const opd_scalar_type common = opdi_result_type_of(stored->tensors, stored->count);
    if (!opd_ok()) { return -1; }
    if (opdi_is_stored_dtype((int)common)) { return 1; }
    change->to = common;
    return opdi_stored_compute(call, change, OPD_DTYPE_NONE);
}

/* Returns true if the operator promotes operands of several dtypes.  Operators with a pointwise formula do, except two
   whose operands must have one dtype.  So do operators that join tensors or compare them for equality. */
static bool opdi_stored_promotes(const opd_op *op, int how) {
    static const char joining[] = " cat stack where block_diag eq ne equal ";
    static const char alike[] = " lerp heaviside ";
    const opdi_card *card = OPDI_ACQUIRE(&op->card);
    if (opdi_is_in_names(op->schema->name, joining)) { return true; }
    return card && card->desc.tags & OPDI_OPTAG_FORMULA && !opdi_is_in_names(op->schema->name, alike) &&
        how != OPDI_STORED_MOVED;
}
/* Returns the mode (OPDI_STORED_*) of a call that may have numbers as operands, or OPDI_STORED_NOT if the call is not
   supported.  `how` is the operator's usual mode.  If a number has a fraction, unsigned integers become float32.  For
   comparisons and bounds, sets change->rounded, so that numbers are rounded to the dtype of the elements. */
static int opdi_stored_numbers(const opd_call *call, opdi_stored_change *change, int how, opd_scalar_type dtype) {
    static const char bounded[] = " clamp clamp_min clamp_max ", comparing[] = " eq ne ", promoting[] = " eq ne mul ";
    const char *const name = call->op->schema->name;
    const bool fraction = opdi_is_bare_unsigned((int)dtype) && opdi_stored_number(call, true);
    for (int i = 0; i < call->op->nargs; i++) {
        if (call->args[i].tag == OPD_TAG_COMPLEX && dtype != OPD_COMPLEX32) { return OPDI_STORED_NOT; }
    }
    if (fraction && opdi_is_in_names(name, promoting)) { return OPDI_STORED_FLOAT; }
    if (!fraction && (opdi_is_in_names(name, comparing) || opdi_is_in_names(name, bounded))) {
        change->rounded = dtype;
    }
    return how;
}
/* Returns the floating or complex dtype that the argument dtype requests, or OPD_DTYPE_NONE if it requests none. */
static opd_scalar_type opdi_stored_result(const opd_call *call) {
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *value = &call->args[i];
        if (value->tag != OPD_TAG_INT || strcmp(call->op->schema->args[i].name, "dtype") != 0) { continue; }
        const opd_scalar_type dtype = (opd_scalar_type)value->u.i;
        return opd_dtype_is_floating(dtype) || opd_dtype_is_complex(dtype) ? dtype : OPD_DTYPE_NONE;
    }
    return OPD_DTYPE_NONE;
}
/* Runs a call with tensors of stored dtypes.  `slot` has the built-in kernel; `how` is OPDI_STORED_*.  Fills *change.
   Returns 0, or -1 and sets an error. */
static int opdi_stored_run(opd_call *call, const opdi_slot *slot, const opdi_stored_call *stored, int how,
                           opdi_stored_change *change) {
    const char *const device = call->slot == OPD_KEY_CUDA ? "cuda" : "cpu";
    opd_scalar_type dtype = (opd_scalar_type)(stored->first ? stored->first : stored->selects)->dtype;
    if (how == OPDI_STORED_PROMOTED) { how = opdi_stored_number(call, true) ? OPDI_STORED_FLOAT : OPDI_STORED_NOT; }
    change->ordered = false;
    change->to = change->bits = change->common = change->rounded = OPD_DTYPE_NONE;
    change->floats = how == OPDI_STORED_FLOAT;
    if (stored->selects) { return opdi_stored_refuse(call->op, device, stored->selects->dtype); }
    if (stored->block) { return opdi_stored_refuse(call->op, device, stored->block->dtype); }
    if (stored->mixed) {
        if (!opdi_stored_promotes(call->op, how)) { return opdi_stored_refuse(call->op, device, dtype); }
        const int rc = opdi_stored_mixed(call, stored, change);
        if (rc <= 0) { return rc; }
        change->to = OPD_DTYPE_NONE;
        dtype = opdi_result_type_of(stored->tensors, stored->count);
        if (how == OPDI_STORED_WIDE || how == OPDI_STORED_ORDERED) { change->common = dtype; }
    }
    if (how == OPDI_STORED_WIDE) { how = opdi_stored_numbers(call, change, how, dtype); }
    change->floats = how == OPDI_STORED_FLOAT;
    if ((how == OPDI_STORED_MOVED &&
         (opdi_stored_has_arg(call, "accumulate") || opdi_stored_has_arg(call, "reduce"))) ||
        (how == OPDI_STORED_FLOAT && opdi_stored_has_arg(call, "rounding_mode"))) { how = OPDI_STORED_NOT; }
    switch (how) {
        case OPDI_STORED_MOVED: return opdi_stored_move(call, slot, change, dtype);
        case OPDI_STORED_WIDE: return opdi_stored_compute(call, change, dtype);
        case OPDI_STORED_COUNTED:
            change->to = opdi_stored_result(call);
            return opdi_stored_compute(call, change, OPD_DTYPE_NONE);
        case OPDI_STORED_FLOAT: return opdi_stored_compute(call, change, OPD_DTYPE_NONE);
        case OPDI_STORED_ORDERED:
            change->ordered = true;
            return opdi_stored_number(call, false) ? opdi_stored_refuse(call->op, device, dtype)
                : opdi_stored_compute(call, change, dtype);
        default: return opdi_stored_refuse(call->op, device, dtype);
    }
}
/* The kernel that runs instead of a built-in kernel for calls with tensors of stored dtypes.  call->user is the slot of
   the built-in kernel; NULL: the slot of the table. */
OPDI_INTERNAL int opdi_stored_kernel(opd_call *call) {
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    opdi_stored_change change;
    opdi_stored_call stored;
    if (!table && !(table = opdi_table_make(call->op))) { return -1; }
    const opdi_slot *slot = call->user ? (const opdi_slot *)call->user : &table->slots[call->slot];
    opdi_stored_look(&stored, call);
    const int how = stored.first ? opdi_stored_mode(call->op, stored.dtypes) : OPDI_STORED_NOT;
    call->user = slot->user;
    if (how == OPDI_STORED_PLAIN || (!stored.first && !stored.selects)) { return slot->fn(call); }
    if (how == OPDI_STORED_BLOCKS && !stored.selects) {
        const opdi_block_forms *const forms = opdi_block_forms_of();
        return forms ? forms->call(call) : -1;
    }
    const size_t bytes = (size_t)stored.listed * sizeof *change.list;
    change.list = stored.listed ? (opd_tensor **)opdi_alloc(bytes) : NULL;
    int rc = stored.listed && !change.list ? -1 : opdi_stored_run(call, slot, &stored, how, &change);
    if (change.list) { opdi_free(change.list, bytes); }
    return rc;
}
