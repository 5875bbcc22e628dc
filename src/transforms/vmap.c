#include "transforms.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>transforms   vmap, derivatives of functions, Jacobians, checkpoints, gradients of tensors
//----------------------------------------------------------------------------------------------------------------------

//== vmap ==============================================================================================================

static opdi_layer *opdi_layer_at(int level, opdi_layer_kind kind, const char *who) {
    opdi_layer *layer = opdi_self()->innermost.layer;
    while (layer && layer->level != level) { layer = layer->outer; }
    if (layer && layer->kind == kind) { return layer; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: level %d is not the level of an open vmap", who, level);
    return NULL;
}

static int opdi_randomness_check(opd_randomness randomness) {
    return randomness == OPD_RANDOM_ERROR || randomness == OPD_RANDOM_DIFFERENT || randomness == OPD_RANDOM_SAME ? 0
        : opd_fail(OPD_ERROR_ARGUMENT, "Only allowed values for randomness are 'error', 'different', or 'same'. Got %d",
                   (int)randomness);
}

int opd_vmap_begin(int64_t batch_size, opd_randomness randomness) {
    if (opdi_visits_left(opdi_self()) || !opd_ok()) { return -1; }
    if (batch_size < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_vmap_begin: the number of examples must be at least 0, not %lld",
                        (long long)batch_size);
    }
    if (opdi_randomness_check(randomness)) { return -1; }
    opdi_vmap_reach();
    opdi_layer *layer = opdi_layer_push(OPDI_LAYER_VMAP, batch_size, randomness);
    if (!layer) { return -1; }
    layer->compute = opdi_function_compute;
    return layer->level;
}

/* Wraps `tensor` for the vmap layer `level`; dim number `in_dim` of `tensor` counts the examples.  Returns the batched
   tensor, or NULL and sets an error. */
opd_tensor *opd_vmap_wrap(opd_tensor *tensor, int in_dim, int level) {
    opdi_layer *layer;
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_vmap_wrap") ||
        !(layer = opdi_layer_at(level, OPDI_LAYER_VMAP, "opd_vmap_wrap"))) { return NULL; }
    if (in_dim == OPD_NO_DIM) { return tensor; }
    int dim = in_dim < 0 ? in_dim + tensor->ndim : in_dim;
    if (dim < 0 || dim >= tensor->ndim) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "vmap: Got in_dim=%d for an input but the input is of type Tensor with %d "
                       "dimensions so expected in_dim to satisfy -%d <= in_dim < %d", in_dim, tensor->ndim,
                       tensor->ndim, tensor->ndim);
        return NULL;
    }
    if (tensor->dims[dim] != layer->size) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "vmap: Expected all tensors to have the same size in the mapped dimension, "
                       "got sizes [%lld, %lld] for the mapped dimension", (long long)layer->size,
                       (long long)tensor->dims[dim]);
        return NULL;
    }
    return opdi_own(opdi_batch_wrap(tensor, dim, level, layer->serial));
}

/* Returns the value of `tensor` outside of the vmap layer `level`; its dim number `out_dim` counts the examples.  If
   `tensor` is not batched at the layer, it is expanded to all examples.  Returns NULL and sets an error on failure. */
opd_tensor *opd_vmap_unwrap(opd_tensor *tensor, int out_dim, int level) {
    opdi_thread *thread = opdi_self();
    opdi_layer *layer, *const top = thread->innermost.layer, *const rule = thread->innermost.rule;
    const uint64_t include = thread->state.include;
    opd_tensor *value = tensor;
    int dim = -1;
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_vmap_unwrap") ||
        !(layer = opdi_layer_at(level, OPDI_LAYER_VMAP, "opd_vmap_unwrap"))) { return NULL; }
    if (opdi_batched_at(tensor, level)) {
        if (opdi_batch_check(tensor, layer)) { return NULL; }
        value = opdi_batched_of(tensor)->value;
        dim = opdi_batched_of(tensor)->dim;
    }
    if (out_dim == OPD_NO_DIM) {
        if (dim < 0) { return tensor; }
        (void)opd_fail(OPD_ERROR_ARGUMENT, "vmap: an output that depends on the batch needs an out_dim other than "
                       "OPD_NO_DIM");
        return NULL;
    }
    int to = out_dim < 0 ? out_dim + tensor->ndim + 1 : out_dim;
    if (to < 0 || to > tensor->ndim) {
        (void)opd_fail(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got %d)",
                       -tensor->ndim - 1, tensor->ndim, out_dim);
        return NULL;
    }
    opdi_layer_set(thread, layer->outer);         /* from here on, only the outer layers handle calls */
    thread->innermost.rule = layer;
    if (dim < 0) {
        value = opd_batch_front(value, -1);
        dim = 0;
    }
    if (value && dim != to) { value = opd_movedim(value, dim, to); }
    else if (value && value != tensor) { value = opdi_own(opdi_keep(value)); }
    thread->innermost.layer = top;
    thread->innermost.rule = rule;
    thread->state.include = include;
    return value;
}

int opd_vmap_end(int level) {
    (void)opdi_visits_left(opdi_self());
    opdi_layer *layer = opdi_self()->innermost.layer;
    if (!layer || layer->level != level || layer->kind != OPDI_LAYER_VMAP) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_vmap_end: the innermost layer is not a vmap of level %d", level);
    }
    opdi_layer_pop(layer);
    return 0;
}

OPDI_COLD_BEGIN

/* The arguments of opd_vmap, which are the same for all chunks.  `size` is the number of examples. */
typedef struct opdi_mapped {
    opd_transform_fn fn;
    void *user;
    opd_tensor *const *inputs;
    int ninputs;
    const opd_vmap_options *options;
    const char *name;
    int64_t size;
} opdi_mapped;

static int opdi_mapped_in(const opdi_mapped *mapped, int i) {
    return !mapped->options->in_dims ? 0 : mapped->options->in_dims[mapped->options->nin_dims == 1 ? 0 : i];
}
static int opdi_mapped_out(const opdi_mapped *mapped, int i) {
    return !mapped->options->out_dims ? 0 : mapped->options->out_dims[mapped->options->nout_dims == 1 ? 0 : i];
}
/* Writes the call, as "vmap(f, in_dims=(0, None), ...)(<inputs>)", to `buf` for messages.  Returns `buf`. */
static const char *opdi_mapped_text(const opdi_mapped *mapped, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    opdi_text_add(&text, "vmap(%s, in_dims=", mapped->name);
    if (!mapped->options->in_dims) { opdi_text_add(&text, "0"); }
    for (int i = 0; mapped->options->in_dims && i < mapped->options->nin_dims && i < 16; i++) {
        opdi_text_add(&text, "%s", i ? ", " : mapped->options->nin_dims > 1 ? "(" : "");
        if (mapped->options->in_dims[i] == OPD_NO_DIM) { opdi_text_add(&text, "None"); }
        else { opdi_text_add(&text, "%d", mapped->options->in_dims[i]); }
    }
    opdi_text_add(&text, "%s, ...)(<inputs>)", mapped->options->in_dims && mapped->options->nin_dims > 1 ? ")" : "");
    return buf;
}

/* Sets the error that vmap cannot map over input number `at`.  If `at` is -1, sets the error that the inputs have
   different numbers of examples; `mapped` is then the number of inputs that vmap maps over.  Returns -1. */
OPDI_NOINLINE static int opdi_mapped_wrong(const opdi_mapped *other, int at, int mapped) {
    char text[256], list[256];
    opdi_text sizes = opdi_text_of(list, sizeof list);
    const opd_tensor *tensor = at >= 0 ? other->inputs[at] : NULL;
    const int dim = at >= 0 ? opdi_mapped_in(other, at) : 0;
    int i;
    (void)opdi_mapped_text(other, text, sizeof text);
    if (other->ninputs <= 0 || !other->inputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: got no inputs. Maybe you forgot to add inputs, or you are trying to "
                        "vmap over a function with no inputs. The latter is unsupported.", text);
    }
    if (other->options->in_dims && other->options->nin_dims != 1 && other->options->nin_dims != other->ninputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: in_dims is not compatible with the structure of `inputs`: in_dims has "
                        "%d elements but there are %d inputs.", text, other->options->nin_dims, other->ninputs);
    }
    if (at >= 0 && !tensor) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: in_dim is %d for an input that is NULL: give OPD_NO_DIM for an input "
                        "that is not a tensor", text, dim);
    }
    if (at >= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: Got in_dim=%d for some input, but that input is a Tensor of "
                        "dimensionality %d so expected in_dim to satisfy -%d <= in_dim < %d.", text, dim, tensor->ndim,
                        tensor->ndim, tensor->ndim);
    }
    if (mapped == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: vmap: Expected at least one Tensor to vmap over", text);
    }
    for (i = mapped = 0; i < other->ninputs; i++) {
        const int axis = opdi_mapped_in(other, i);
        if (axis == OPD_NO_DIM) { continue; }
        opdi_text_add(&sizes, "%s%lld", mapped++ ? ", " : "", (long long)opd_size(other->inputs[i], axis));
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "vmap: Expected all tensors to have the same size in the mapped dimension, got "
                    "sizes [%s] for the mapped dimension", list);
}
/* Input i has `size` examples, but the inputs before it have another number.  In a fake mode, a number that depends on
   data may still be the other.  If so, notes that it is, updates mapped->size and returns true. */
static bool opdi_mapped_agree(opdi_mapped *mapped, int i, int64_t size) {
    const opdi_fake *fake = opdi_self()->innermost.fake;
    const int mark = opd_error_mark();
    bool agree = fake && fake->agree(mapped->inputs[i], opdi_mapped_in(mapped, i), mapped->size) == 0;
    for (int k = 0; fake && !agree && k < i; k++) {
        if (opdi_mapped_in(mapped, k) == OPD_NO_DIM) { continue; }
        (void)opd_error_rewind(mark);
        agree = fake->agree(mapped->inputs[k], opdi_mapped_in(mapped, k), size) == 0;
        if (agree) { mapped->size = size; }
    }
    (void)opd_error_rewind(mark);
    return agree;
}
/* Checks the arguments of opd_vmap and sets mapped->size, the number of examples.  Returns 0, or -1 and sets an
   error. */
static int opdi_mapped_check(opdi_mapped *mapped) {
    bool differ = false;
    int count = 0;
    if (opdi_randomness_check(mapped->options->randomness)) { return -1; }
    if (mapped->options->chunk_size < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "vmap: chunk_size must be positive, or 0 for no chunks, but is %lld",
                        (long long)mapped->options->chunk_size);
    }
    if (mapped->ninputs <= 0 || !mapped->inputs ||
        (mapped->options->in_dims && mapped->options->nin_dims != 1 && mapped->options->nin_dims != mapped->ninputs)) {
        return opdi_mapped_wrong(mapped, -1, 0);
    }
    if (opdi_any_dead(mapped->inputs, mapped->ninputs, "opd_vmap")) { return -1; }
    for (int i = 0; i < mapped->ninputs; i++) {
        const opd_tensor *tensor = mapped->inputs[i];
        const int dim = opdi_mapped_in(mapped, i), ndim = tensor ? tensor->ndim : 0;
        if (dim == OPD_NO_DIM) { continue; }
        if (dim < -ndim || dim >= ndim) { return opdi_mapped_wrong(mapped, i, 0); }
        int64_t size = tensor->dims[dim < 0 ? dim + ndim : dim];
        if (count++ == 0) { mapped->size = size; }
        differ = differ || (size != mapped->size && !opdi_mapped_agree(mapped, i, size));
    }
    return count == 0 || differ ? opdi_mapped_wrong(mapped, -1, count) : 0;
}

/* Returns `total`, the number of outputs of `who`.  If their array, which has room for `cap`, is too short, returns -1
   and sets an error. */
OPDI_INTERNAL int opdi_outputs_room(const char *who, int total, int cap) {
    if (total <= cap) { return total; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: there are %d outputs, but the array for them has room for %d: pass a "
                    "longer array, and its length", who, total, cap);
}
/* Copies the outputs `made` of the transform `who` to its caller's `outputs`, which has room for `cap`.  Returns
   `total`, their number.  If there are too many, or if the transform has failed (`total` < 0), returns -1, and sets
   outputs to NULL instead: `least` of them, or more if the function had already written more, but at most `cap`. */
OPDI_INTERNAL int opdi_outputs_return(const char *who, opd_tensor **outputs, int cap, opd_tensor *const *made,
                                      int total, int least) {
    int count = total < 0 ? least : total;
    total = opdi_outputs_room(who, total, cap);
    for (int i = count; total < 0 && i < OPD_TRANSFORM_OUTPUTS; i++) { if (made[i]) { count = i + 1; } }
    for (int i = 0; outputs && i < OPDI_MIN(count, cap); i++) { outputs[i] = total < 0 ? NULL : made[i]; }
    return total;
}

/* Runs the function once for `count` examples, from example `from` on, and writes the results to `outputs`.  Returns
   the number of outputs, or -1 and sets an error. */
static int opdi_mapped_pass(const opdi_mapped *mapped, int64_t from, int64_t count, opd_tensor **outputs) {
    opd_tensor **in = opdi_scope_tensors(mapped->ninputs);
    int i, total = -1, level = -1;
    if (!in) { return -1; }
    for (i = 0; i < mapped->ninputs; i++) {
        const int dim = opdi_mapped_in(mapped, i);
        in[i] = mapped->inputs[i];
        if (dim == OPD_NO_DIM || count == mapped->size) { continue; }
        if (!(in[i] = opd_narrow(in[i], dim < 0 ? dim + in[i]->ndim : dim, from, count))) { return -1; }
    }
    if ((level = opd_vmap_begin(count, mapped->options->randomness)) < 0) { return -1; }
    opdi_visit_frame visit;
    opdi_visit_begin(opdi_self(), &visit, "the function of a transform", opdi_layers_leave,
                     opdi_self()->innermost.layer);
    for (i = 0; i < mapped->ninputs; i++) {
        const int dim = opdi_mapped_in(mapped, i);
        if (dim != OPD_NO_DIM && !(in[i] = opd_vmap_wrap(in[i], dim, level))) { break; }
    }
    if (i == mapped->ninputs) {
        total = mapped->fn(mapped->user, in, mapped->ninputs, outputs);
        total = opdi_outputs_check(total, outputs, "vmap", mapped->name);
    }
    if (total >= 0 && mapped->options->out_dims && mapped->options->nout_dims != 1 &&
        mapped->options->nout_dims != total) {
        total = opd_fail(OPD_ERROR_ARGUMENT,
                         "vmap(%s, ..., out_dims=...)(<inputs>): out_dims is not compatible with the "
                         "structure of `outputs`. out_dims has %d elements but outputs has %d.", mapped->name,
                         mapped->options->nout_dims, total);
    }
    for (i = 0; i < total; i++) {
        if (!(outputs[i] = opd_vmap_unwrap(outputs[i], opdi_mapped_out(mapped, i), level))) { total = -1; }
    }
    opdi_layers_end(level);
    opdi_visit_end(&visit);
    return total;
}

/* Runs the function chunk by chunk.  Concatenates the outputs along the dims that count the examples.  Returns the
   number of outputs, or -1 and sets an error. */
static int opdi_mapped_chunks(const opdi_mapped *mapped, opd_tensor **outputs) {
    const int64_t step = mapped->options->chunk_size, count = (mapped->size + step - 1) / step;
    opd_tensor **parts[OPD_TRANSFORM_OUTPUTS], *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    uint64_t random[2];
    int total = 0;
    for (int64_t k = 0; k < count; k++) {
        if (mapped->options->randomness == OPD_RANDOM_SAME && k == 0) { opdi_random_get(NULL, random); }
        else if (mapped->options->randomness == OPD_RANDOM_SAME) { opdi_random_set(NULL, random); }
        int got = opdi_mapped_pass(mapped, k * step, OPDI_MIN(step, mapped->size - k * step), out);
        if (got < 0) { return -1; }
        if (k && got != total) {
            return opd_fail(OPD_ERROR_ARGUMENT, "vmap: %s returned %d outputs for one chunk and %d for another",
                            mapped->name, total, got);
        }
        total = got;
        for (int i = 0; i < total; i++) {
            if (k == 0 && !(parts[i] = opdi_scope_tensors((int)count))) { return -1; }
            parts[i][k] = out[i];
        }
    }
    for (int i = 0; i < total; i++) {
        const int dim = opdi_mapped_out(mapped, i);
        outputs[i] = dim == OPD_NO_DIM ? parts[i][0] : opd_cat(opd_tensors_of(parts[i], count), dim);
        if (!outputs[i]) { return -1; }
    }
    return total;
}

/* Checks the arguments of opd_vmap and runs the function, on all examples at once or in chunks.  Returns the number of
   outputs, or -1 and sets an error. */
static int opdi_vmap(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                     const opd_vmap_options *options, opd_tensor **outputs) {
    opd_vmap_options none;
    opdi_mapped mapped;
    memset(&none, 0, sizeof none);
    if (opdi_visits_left(opdi_self()) || !opd_ok()) { return -1; }
    if (!fn || !outputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_vmap: the %s is NULL", fn ? "outputs" : "function");
    }
    mapped.fn = fn;
    mapped.user = user;
    mapped.inputs = inputs;
    mapped.ninputs = ninputs;
    mapped.options = options ? options : &none;
    mapped.name = mapped.options->name ? mapped.options->name : "fn";
    mapped.size = 0;
    if (opdi_mapped_check(&mapped)) { return -1; }
    return mapped.options->chunk_size > 0 && mapped.options->chunk_size < mapped.size ? opdi_mapped_chunks(&mapped,
        outputs) : opdi_mapped_pass(&mapped, 0, mapped.size, outputs);
}
int opd_vmap(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs, const opd_vmap_options *options,
             opd_tensor **outputs, int cap) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int count = opdi_vmap(fn, user, inputs, ninputs, options, outputs ? out : NULL);
    return opdi_outputs_return("vmap", outputs, cap, out, count,
                               options && options->out_dims ? OPDI_MAX(options->nout_dims, 1) : 1);
}

OPDI_COLD_END
