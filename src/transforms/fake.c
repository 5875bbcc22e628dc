#include "transforms.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>fake         running programs on shapes alone, and estimating their cost
//
//  A fake is a meta tensor whose storage stores the device that it stands for.  The kernel at the Fake key, below the
//  autograd keys, replaces real tensors by fakes and runs the operator at Meta.  The results stand for the device of
//  the call.  Bytes are counted when storages are made and freed.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL int64_t opdi_fake_size(int64_t min, int64_t max);
OPDI_INTERNAL double opdi_flops_none(const opd_call *call);
OPDI_INTERNAL double opdi_flops_elements(const opd_call *call);
OPDI_INTERNAL double opdi_flops_product(const opd_call *call);
OPDI_INTERNAL double opdi_flops_added_product(const opd_call *call);
OPDI_INTERNAL double opdi_flops_convolution(const opd_call *call);
OPDI_INTERNAL double opdi_flops_convolution_backward(const opd_call *call);
OPDI_INTERNAL int opdi_fake_kernel(opd_call *call);
OPDI_INTERNAL int opdi_sizes_kernel(opd_call *call);
OPDI_INTERNAL int opdi_sizes_call(opd_call *call, opd_keyset keys);
OPDI_INTERNAL int opdi_sizes_called(opd_call *call, int before);
OPDI_INTERNAL const int64_t *opdi_sizes_today(const opd_node *node, uint32_t nr, const int64_t *sizes);
OPDI_INTERNAL void opdi_symbols_end(opdi_symbols *symbols);
OPDI_INTERNAL int64_t opdi_symbol_number(opdi_symbols *symbols, int64_t value, int64_t min, int64_t max);

/* Stores, in a new meta storage, the device that it stands for.  If a kernel is running, counts the bytes of the
   storage. */
static void opdi_fake_storage_made(opdi_storage *storage) {
    opdi_thread *thread = opdi_self();
    opdi_fake_mode *fake = opdi_fake_mode_of(thread);
    storage->stands_for = (uint16_t)(fake->place + 1);
    if (!fake->inside) { return; }
    storage->device = OPD_META;
    thread->fake_live += storage->bytes;
    if (fake->cost && thread->fake_live > fake->cost->most) { fake->cost->most = thread->fake_live; }
}

static int64_t opdi_faked_at(const opdi_fake_mode *fake, const opd_tensor *tensor) {
    int64_t i = (int64_t)(((uint64_t)(uintptr_t)tensor * 0x9e3779b97f4a7c15u) >> 20) & (fake->size - 1);
    while (fake->map[i].real && fake->map[i].real != tensor) { i = (i + 1) & (fake->size - 1); }
    return i;
}
/* Returns the number of bytes of the real tensors that were passed to this fake mode, but not to the mode outside of
   it. */
static int64_t opdi_fake_given_also(const opdi_fake_mode *fake) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < fake->size; i++) {
        const opdi_faked *faked = &fake->map[i];
        const bool seen = faked->real && fake->outer->size &&
            fake->outer->map[opdi_faked_at(fake->outer, faked->real)].real;
        if (faked->real && !seen) { bytes += faked->fake->storage->bytes; }
    }
    return bytes;
}

/* Lets calls reach opdi_fake_kernel: see src/dispatch/late_kernels.c. */
OPDI_INTERNAL void opdi_fake_reach(void) {
    static const opd_kernel kernel = opdi_fake_kernel;
    opdi_late_fill(OPDI_LATE_FAKE, &kernel, 1);
}
static opd_tensor *opdi_fake_new(opd_ints sizes, opd_scalar_type dtype, opd_device device);
/* If it is not 0, new sizes that depend on data are computed with a smaller number than otherwise, so that a caller
   finds out what depends on this number. */
OPDI_INTERNAL OPDI_TLS int opdi_symbols_less;

opd_fake_block opd_fake_begin(void) {
    opdi_fake_reach();
    opdi_thread *thread = opdi_self();
    opdi_fake_mode *fake = (opdi_fake_mode *)opdi_alloc(sizeof *fake);
    opd_fake_block block;
    (void)opdi_visits_left(thread);
    memset(&block, 0, sizeof block);
    block.open = true;
    if (!fake) { return block; }
    memset(fake, 0, sizeof *fake);
    fake->asked.born = opdi_fake_storage_made;
    fake->asked.make = opdi_fake_new;
    fake->asked.call = opdi_sizes_call;
    fake->asked.called = opdi_sizes_called;
    fake->asked.today = opdi_sizes_today;
    fake->asked.agree = opd_check_size;
    fake->outer = opdi_fake_mode_of(thread);
    fake->symbols = fake->outer ? fake->outer->symbols : &fake->own;
    fake->cost = fake->outer ? fake->outer->cost : NULL;
    fake->place = OPD_CPU;
    thread->innermost.fake = &fake->asked;
    opdi_symbols_less = 0;                        /* a function that was left by a jump may have left it set */
    block.mode = fake;
    block.guard = opd_keys_include(opd_keyset_make(OPD_BIT_OF(OPD_F_FAKE), 0));
    return block;
}
/* Ends a fake mode, and the modes inside of it that have not ended yet, and frees their tensors. */
void opd_fake_end(opd_fake_block *block) {
    opdi_thread *thread = opdi_self();
    opdi_fake_mode *ended = block ? (opdi_fake_mode *)block->mode : NULL, *fake;
    if (!block || !block->open) { return; }
    (void)opdi_visits_left(thread);
    block->open = false;
    for (fake = opdi_fake_mode_of(thread); fake && fake != ended; fake = fake->outer) { }
    if (!fake) { return; }
    opd_keys_restore(block->guard);
    do {                                          /* ends the mode itself and the modes inside of it */
        fake = opdi_fake_mode_of(thread);
        thread->innermost.fake = fake->outer ? &fake->outer->asked : NULL;
        if (fake->cost && fake->cost->block.mode == fake) {
            fake->cost->given = fake->given;
            fake->cost->block.open = false;
        }
        else if (fake->cost) { fake->outer->given += opdi_fake_given_also(fake); }
        for (int64_t i = 0; i < fake->size; i++) {
            if (fake->map[i].real) {
                opdi_drop(fake->map[i].real);
                opdi_drop(fake->map[i].fake);
            }
        }
        opdi_symbols_end(&fake->own);
        if (fake->map) { opdi_free(fake->map, (size_t)fake->size * sizeof *fake->map); }
        opdi_free(fake, sizeof *fake);
    } while (fake != ended);
}
bool opd_fake_enabled(void) { return opdi_self()->innermost.fake != NULL; }

OPDI_INTERNAL opd_tensor *opdi_fake_make(const int64_t *sizes, const int64_t *strides, int ndim, opd_scalar_type dtype,
                                  int place) {
    opdi_fake_mode *fake = opdi_fake_mode_of(opdi_self());
    const int was = fake->place;
    fake->place = place;
    fake->inside++;
    opd_tensor *tensor = opdi_tensor_make(sizes, strides, ndim, dtype, OPD_META);
    fake->inside--;
    fake->place = was;
    return tensor;
}
static opd_tensor *opdi_fake_new(opd_ints sizes, opd_scalar_type dtype, opd_device device) {
    return opdi_own(opdi_fake_make(sizes.data, NULL, (int)sizes.n, dtype, opdi_place(device)));
}

static int opdi_faked_grow(opdi_fake_mode *fake) {
    const opdi_fake_mode old = *fake;
    if (2 * (fake->used + 1) <= fake->size) { return 0; }
    fake->size = OPDI_MAX(64, 2 * old.size);
    fake->map = (opdi_faked *)opdi_alloc((size_t)fake->size * sizeof *fake->map);
    if (!fake->map) {
        *fake = old;
        return -1;
    }
    memset(fake->map, 0, (size_t)fake->size * sizeof *fake->map);
    for (int64_t i = 0; i < old.size; i++) {
        if (old.map[i].real) { fake->map[opdi_faked_at(fake, old.map[i].real)] = old.map[i]; }
    }
    if (old.map) { opdi_free(old.map, (size_t)old.size * sizeof *old.map); }
    return 0;
}
/* Returns the fake tensor for `tensor`; the mode owns it.  If `tensor` is already a fake, a wrapped number or batched,
   returns `tensor` itself.  Returns NULL if memory runs out. */
static opd_tensor *opdi_fake_of(opd_tensor *tensor) {
    opdi_fake_mode *fake = opdi_fake_mode_of(opdi_self());
    if (tensor->backend == OPD_META || tensor->flags & (OPDI_WRAPPED | OPDI_BATCHED)) { return tensor; }
    if (opdi_faked_grow(fake)) { return NULL; }
    opdi_faked *faked = &fake->map[opdi_faked_at(fake, tensor)];
    if (faked->real) { return faked->fake; }
    faked->fake = opdi_fake_make(tensor->dims, tensor->dims + tensor->ndim, tensor->ndim,
                                 (opd_scalar_type)tensor->dtype, opdi_place_of(tensor));
    if (!faked->fake) { return NULL; }
    opdi_set_lazy(faked->fake, tensor->functionality);
    opdi_retain(tensor);
    faked->real = tensor;
    fake->used++;
    fake->given += faked->fake->storage->bytes;
    return faked->fake;
}
opd_tensor *opd_fake_tensor(opd_tensor *tensor) {
    opd_tensor *fake;
    if (opdi_null_tensor(tensor, "opd_fake_tensor") || !opd_ok()) { return NULL; }
    if (!opdi_self()->innermost.fake) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_fake_tensor: fake tensors can only be made in a fake mode "
                       "(opd_fake_begin)");
        return NULL;
    }
    if (!(fake = opdi_fake_of(tensor))) { return NULL; }
    if (fake != tensor && opdi_requires_grad(tensor) && !opdi_requires_grad(fake)) {
        (void)opd_tensor_set_requires_grad(fake, true);
    }
    return opdi_own(opdi_keep(fake));
}

/* Returns the size that a fake mode takes for a size that depends on data: `max`, or `min` if `max` is negative.
   Stores these bounds.  Returns -1 and sets an error on failure. */
OPDI_INTERNAL int64_t opdi_fake_size(int64_t min, int64_t max) {
    opdi_fake_mode *fake = opdi_fake_mode_of(opdi_self());
    const int64_t value = max >= 0 ? max : min;
    if (!fake) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the size of the result depends on data, but a meta tensor has no data. "
                        "Call the operator in a fake mode (opd_fake_begin), which chooses a size");
    }
    if (min < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "expected min to be greater than or equal to 0, got min=%lld",
                        (long long)min);
    }
    if (max >= 0 && max < min) {
        return opd_fail(OPD_ERROR_ARGUMENT, "expected max to be greater than or equal to min, got min=%lld and "
                        "max=%lld", (long long)min, (long long)max);
    }
    return opdi_symbol_number(fake->symbols, value, min, max);
}
int64_t opd_fake_new_size(opd_call *call, int64_t min, int64_t max) {
    (void)call;
    return opdi_fake_size(min, max);
}

/* Sets *place to the device of a call's tensors.  Returns 0, or -1 and sets an error if the tensors are on two
   devices. */
static int opdi_fake_place(const opd_call *call, const opd_value *args, int *place) {
    const opd_tensor *first = NULL;
    *place = OPD_CPU;
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *value = &args[i];
        for (int32_t k = 0; k < (value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR); k++) {
            const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k];
            const int its = !tensor || tensor->backend != OPD_META ? -1
                : tensor->storage->stands_for ? tensor->storage->stands_for - 1 : OPD_META;
            if (its < 0 || (its == OPD_CPU && tensor->ndim == 0 && first)) { continue; }
            if (!first || (first->ndim == 0 && *place == OPD_CPU)) {
                first = tensor;
                *place = its;
                continue;
            }
            if (its != *place && !opdi_mixes_devices(call->op)) {
                char one[32], two[32];
                return opd_fail(OPD_ERROR_ARGUMENT, "Expected all tensors to be on the same device, but found at least "
                                "two devices, %s and %s! (argument '%s')",
                                opdi_device_text(opdi_place_device(*place), one, sizeof one),
                                opdi_device_text(opdi_place_device(its), two, sizeof two),
                                call->op->schema->args[i].name);
            }
        }
    }
    return 0;
}
/* Returns true if no result of the operator is a tensor or a list.  Device arguments of such an operator are not
   replaced by meta, because the operator compares them with the devices that fakes stand for. */
static bool opdi_returns_no_tensor(const opd_op *op) {
    for (int i = 0; i < op->nrets; i++) {
        const int32_t kind = opdi_strip_optional(op->schema->returns[i].type)->kind;
        if (kind == OPDI_TYPE_TENSOR || kind == OPDI_TYPE_LIST || kind == OPDI_TYPE_OTHER) { return false; }
    }
    return true;
}
/* Copies the call's arguments to `args`, and replaces real tensors among them by fakes.  If the call makes tensors,
   replaces its device argument by meta.  Sets *place to the device that the results stand for.  Returns 0, or -1 and
   sets an error. */
static int opdi_fake_args(const opd_call *call, opd_value *args, int *place) {
    const opd_device meta = opd_device_make(OPD_META, -1);
    bool any = false;
    for (int i = 0; i < call->op->nargs; i++) {
        opd_value *value = &args[i];
        *value = call->args[i];
        any |= value->tag == OPD_TAG_TENSOR || value->tag == OPD_TAG_TENSORS;
        if (value->tag == OPD_TAG_TENSOR && !(value->u.t = opdi_fake_of(value->u.t))) { return -1; }
        if (value->tag == OPD_TAG_TENSORS) {
            opd_tensor **list = opdi_scope_tensors(value->n + 1);
            if (!list) { return -1; }
            for (int32_t k = 0; k < value->n; k++) {
                list[k] = value->u.tensors[k];
                if (list[k] && !(list[k] = opdi_fake_of(list[k]))) { return -1; }
            }
            value->u.tensors = list;
        }
        if (value->tag == OPD_TAG_TENSOR && value->u.t != call->args[i].u.t && i == 0 &&
            (opd_op_tags(call->op) & OPD_OPTAG_INPLACE_VIEW)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s would change the sizes of a real tensor in a fake mode: convert "
                            "the tensor to a fake tensor first (opd_fake_tensor)", call->op->name);
        }
    }
    if (opdi_fake_place(call, args, place) || opdi_check_fakes(call->op, args)) { return -1; }
    for (int i = 0; i < call->op->nargs && !opdi_returns_no_tensor(call->op); i++) {
        if (opdi_strip_optional(call->op->schema->args[i].type)->kind != OPDI_TYPE_DEVICE) { continue; }
        if (args[i].tag == OPD_TAG_DEVICE && (args[i].u.device.type != OPD_META ||
            !opdi_fake_mode_of(opdi_self())->inside)) {
            *place = opdi_place(args[i].u.device);
        }
        if (args[i].tag == OPD_TAG_DEVICE || !any) { args[i] = opd_value_device(meta); }
    }
    return 0;
}

/* Adds a call of `op` to the operator's row in *cost: its floating-point operations, and the bytes of its results.  If
   memory runs out, the call is not counted. */
static void opdi_cost_add(opd_cost *cost, const opd_op *op, double flops, int64_t bytes) {
    int i = 0;
    while (i < cost->nrows && cost->rows[i].op != op) { i++; }
    if (i == cost->capacity) {
        const int capacity = OPDI_MAX(32, 2 * cost->capacity);
        opd_cost_row *rows = (opd_cost_row *)opdi_alloc((size_t)capacity * sizeof *rows);
        if (!rows) { return; }
        if (cost->rows) {
            memcpy(rows, cost->rows, (size_t)cost->nrows * sizeof *rows);
            opdi_free(cost->rows, (size_t)cost->capacity * sizeof *rows);
        }
        cost->rows = rows;
        cost->capacity = capacity;
    }
    if (i == cost->nrows) {
        memset(&cost->rows[cost->nrows++], 0, sizeof *cost->rows);
        cost->rows[i].op = op;
    }
    cost->rows[i].calls++;
    cost->rows[i].flops += flops;
    cost->rows[i].bytes += bytes;
}
/* Returns the number of elements of the largest of `count` values.  A list counts as one value, with the elements of
   all its tensors. */
static double opdi_cost_elements(const opd_value *value, int count) {
    double most = 0;
    for (int i = 0; i < count; i++) {
        double here = 0;
        for (int32_t k = 0; k < (value[i].tag == OPD_TAG_TENSORS ? value[i].n : value[i].tag == OPD_TAG_TENSOR); k++) {
            const opd_tensor *tensor = value[i].tag == OPD_TAG_TENSOR ? value[i].u.t : value[i].u.tensors[k];
            here += tensor ? (double)tensor->numel : 0;
        }
        most = OPDI_MAX(most, here);
    }
    return most;
}
/* Functions for the field `flops` of operator descriptors; they return the number of floating-point operations of a
   call.  opdi_flops_none: for operators that only copy; returns 0.  opdi_flops_elements: for operators like sums;
   returns the number of elements of the largest argument or result. */
OPDI_INTERNAL double opdi_flops_none(const opd_call *call) {
    (void)call;
    return 0;
}
OPDI_INTERNAL double opdi_flops_elements(const opd_call *call) {
    return OPDI_MAX(opdi_cost_elements(call->args, call->op->nargs), opdi_cost_elements(call->rets, call->op->nrets));
}
/* Returns the number of operations of a matrix product: two for each product of two elements.  Each element of the
   result is a sum over the last dim of `arg`; in addbmm, it is also a sum over the batch. */
static double opdi_flops_of_product(const opd_call *call, const opd_value *arg) {
    const opd_tensor *out = call->op->nrets > 0 && call->rets[0].tag == OPD_TAG_TENSOR ? call->rets[0].u.t : NULL;
    if (!out || arg->tag != OPD_TAG_TENSOR) { return 0; }
    return 2. * (double)out->numel * (double)opd_size(arg->u.t, -1) *
        (arg->u.t->ndim > out->ndim && out->ndim == 2 ? (double)arg->u.t->dims[0] : 1);
}
OPDI_INTERNAL double opdi_flops_product(const opd_call *call) { return opdi_flops_of_product(call, &call->args[0]); }
OPDI_INTERNAL double opdi_flops_added_product(const opd_call *call) {
    return opdi_flops_of_product(call, &call->args[1]);
}
/* Returns the number of operations of a convolution: two for each product of an element of `places` and a weight.
   `places` is the output, or, for a transposed convolution, the input. */
static double opdi_flops_of_places(const opd_tensor *places, const opd_tensor *weight) {
    return 2. * (double)places->numel * (double)weight->numel / (double)OPDI_MAX(weight->dims[0], 1);
}
OPDI_INTERNAL double opdi_flops_convolution(const opd_call *call) {
    const bool transposed = call->args[6].u.i != 0;
    if (call->rets[0].tag != OPD_TAG_TENSOR) { return 0; }
    return opdi_flops_of_places(transposed ? call->args[0].u.t : call->rets[0].u.t, call->args[1].u.t);
}
OPDI_INTERNAL double opdi_flops_convolution_backward(const opd_call *call) {
    const bool transposed = call->args[7].u.i != 0;
    const double one = opdi_flops_of_places(call->args[transposed ? 1 : 0].u.t, call->args[2].u.t);
    return one * ((call->rets[0].tag == OPD_TAG_TENSOR) + (call->rets[1].tag == OPD_TAG_TENSOR));
}
/* Returns the number of operations of a call: the number that the descriptor's function `flops` returns, or, for a
   pointwise operator without this function, one for each element. */
static double opdi_cost_flops(const opd_call *call) {
    const opdi_card *card = call->op->card;
    if (card && card->desc.flops) { return card->desc.flops(call); }
    return opd_op_tags(call->op) & OPD_OPTAG_POINTWISE ? opdi_flops_elements(call) : 0;
}
static void opdi_cost_call(opdi_fake_mode *fake, const opd_call *call) {
    int64_t bytes = 0;
    for (int i = 0; i < call->op->nrets; i++) {
        const opd_value *value = &call->rets[i];
        for (int32_t k = 0; k < (value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR); k++) {
            const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k];
            if (tensor && tensor->storage->block == tensor && (call->owned >> i & 1)) {
                bytes += tensor->storage->bytes;
            }
        }
    }
    opdi_cost_add(fake->cost, call->op, opdi_cost_flops(call), bytes);
}

/* Returns true if an operator's kernel is composite.  If so, the operators that it calls come to the Fake key
   themselves. */
static bool opdi_fake_is_composite(const opd_op *op) {
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    return table && table->slots[OPD_KEY_META].fn != opdi_missing_kernel &&
           table->slots[OPD_KEY_META].fn == table->slots[OPD_KEY_AUTOGRAD_CPU].fn;
}
/* The kernel at the Fake key.  In a fake mode, runs the call at Meta with fakes instead of real tensors, and adds its
   cost to opd_cost, if costs are counted.  In a checkpoint that keeps results, calls its kernel, which comes back here
   without the checkpoint.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fake_kernel(opd_call *call) {
    opdi_thread *thread = call->th;
    opdi_fake_mode *fake = opdi_fake_mode_of(thread);
    const opd_value *const given = call->args;
    opd_keyset keys = opd_keyset_and(call->keys, opd_keyset_below(OPD_F_FAKE));
    opd_value args[OPD_MAX_ARGS];
    int64_t calls = 0;
    int place;
    if (OPDI_UNLIKELY(thread->innermost.keeping != NULL) && !thread->innermost.tangents &&
        !opdi_fake_is_composite(call->op)) {
        return thread->innermost.keeping->kernel(call);
    }
    if (!fake) { return opd_redispatch(call, keys); }
    keys = opd_keyset_make(keys.functionality | OPD_BIT_OF(OPD_F_DENSE), (uint64_t)1 << OPD_META);
    if (opdi_fake_is_composite(call->op)) { return opd_redispatch(call, keys); }
    if (opdi_fake_args(call, args, &place)) { return -1; }
    for (int i = 0; fake->cost && i < fake->cost->nrows; i++) { calls += fake->cost->rows[i].calls; }
    int was = fake->place;
    fake->place = place;
    fake->inside++;
    call->args = args;
    const int before = fake->symbols->count;
    int rc = opd_redispatch(call, keys);
    fake->inside--;
    fake->place = was;
    if (rc == 0 && fake->cost) {
        for (int i = 0; i < fake->cost->nrows; i++) { calls -= fake->cost->rows[i].calls; }
        if (calls == 0) { opdi_cost_call(fake, call); }
    }
    call->args = given;
    for (int k = 0; rc == 0 && k < call->op->nrets; k++) {       /* a written argument is returned itself, not its
                                                                    fake */
        for (int i = 0; call->rets[k].tag == OPD_TAG_TENSOR && i < call->op->nargs; i++) {
            if (given[i].tag == OPD_TAG_TENSOR && args[i].u.t == call->rets[k].u.t && !(call->owned >> k & 1)) {
                call->rets[k] = given[i];
                break;
            }
        }
    }
    return rc == 0 && fake->symbols->count ? fake->asked.called(call, before) : rc;
}
/* The kernel at the key of tensors with sizes that depend on data, which is above the keys of autograd.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_sizes_kernel(opd_call *call) {
    const opd_keyset keys = opd_keyset_and(call->keys, opd_keyset_below(OPDI_SIZES_KEY));
    const opdi_fake *fake = call->th->innermost.fake;
    return fake ? fake->call(call, keys) : opd_redispatch(call, keys);
}

//== costs =============================================================================================================

opd_cost *opd_cost_begin(void) {
    opd_cost *cost;
    if (!opd_ok() || !(cost = (opd_cost *)opdi_alloc(sizeof *cost))) { return NULL; }
    memset(cost, 0, sizeof *cost);
    cost->block = opd_fake_begin();
    if (!cost->block.mode) {
        opdi_free(cost, sizeof *cost);
        return NULL;
    }
    ((opdi_fake_mode *)cost->block.mode)->cost = cost;
    cost->begun = cost->most = opdi_self()->fake_live;
    return cost;
}
void opd_cost_end(opd_cost *cost) {
    int k;
    if (!cost) { return; }
    opd_fake_end(&cost->block);
    for (int i = 1; i < cost->nrows; i++) {
        const opd_cost_row row = cost->rows[i];
        for (k = i; k > 0 && (row.flops > cost->rows[k - 1].flops || (row.flops >= cost->rows[k - 1].flops &&
                              row.bytes > cost->rows[k - 1].bytes)); k--) { cost->rows[k] = cost->rows[k - 1]; }
        cost->rows[k] = row;
    }
}
void opd_cost_free(opd_cost *cost) {
    if (!cost) { return; }
    opd_cost_end(cost);
    if (cost->rows) { opdi_free(cost->rows, (size_t)cost->capacity * sizeof *cost->rows); }
    opdi_free(cost, sizeof *cost);
}
opd_cost_sum opd_cost_total(const opd_cost *cost) {
    opd_cost_sum sum;
    memset(&sum, 0, sizeof sum);
    for (int i = 0; cost && i < cost->nrows; i++) {
        sum.calls += cost->rows[i].calls;
        sum.flops += cost->rows[i].flops;
        sum.bytes += cost->rows[i].bytes;
    }
    if (cost) {
        sum.peak = cost->most - cost->begun;
        sum.given = cost->block.open ? ((const opdi_fake_mode *)cost->block.mode)->given : cost->given;
    }
    return sum;
}
opd_cost_row opd_cost_at(const opd_cost *cost, int i) {
    opd_cost_row none;
    memset(&none, 0, sizeof none);
    return cost && i >= 0 && i < cost->nrows ? cost->rows[i] : none;
}
/* Writes a number with three digits and a unit to `buf`, for example "12.3 M".  `step` is the factor from one prefix to
   the next (1000 or 1024).  Returns `buf`. */
static const char *opdi_cost_number(double value, double step, const char *unit, char *buf, size_t cap) {
    static const char prefixes[] = " kMGTPE";
    int i = 0;
    while (value >= step && prefixes[i + 1]) {
        value /= step;
        i++;
    }
    (void)snprintf(buf, cap, "%.*f %.*s%s%s", i == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2, value, i > 0,
                   prefixes + i, i > 0 && step > 1000 ? "i" : "", unit);
    return buf;
}
/* Writes *cost as a table to `buf`: a row for each operator, and then the totals.  Returns the length of the text, as
   snprintf does. */
size_t opd_cost_print(const opd_cost *cost, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    const opd_cost_sum sum = opd_cost_total(cost);
    char first[40], second[40];
    opdi_text_add(&text, "%-40s %10s %12s %12s\n", "operator", "calls", "flops", "results");
    for (int i = 0; cost && i < cost->nrows; i++) {
        const opd_cost_row *cost_row = &cost->rows[i];
        opdi_text_add(&text, "%-40s %10lld %12s %12s\n", opd_op_name(cost_row->op), (long long)cost_row->calls,
                      opdi_cost_number(cost_row->flops, 1000, "", first, sizeof first),
                      opdi_cost_number((double)cost_row->bytes, 1024, "B", second, sizeof second));
    }
    opdi_text_add(&text, "%-40s %10lld %12s %12s\n", "total", (long long)sum.calls,
                  opdi_cost_number(sum.flops, 1000, "", first, sizeof first),
                  opdi_cost_number((double)sum.bytes, 1024, "B", second, sizeof second));
    opdi_text_add(&text, "peak memory %s, of which %s were given\n",
                  opdi_cost_number((double)sum.peak, 1024, "B", first, sizeof first),
                  opdi_cost_number((double)sum.given, 1024, "B", second, sizeof second));
    return text.length;
}
