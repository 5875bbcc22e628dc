#include "transforms.h"

//== checkpoints =======================================================================================================
//
//  A segment is the function whose saved tensors are recomputed in backward.  It is recorded as usual, but its nodes
//  keep numbers instead of the tensors that they save.  When backward needs the first of these tensors, the segment
//  runs again, with the same inputs and random numbers.  It saves the same tensors in the same order, so the number of
//  a tensor tells which of them a node needs.
//
//  Recomputed tensors belong to one backward.  A tensor is dropped as soon as its node has run.  All others are dropped
//  at the end of that backward.

typedef struct opdi_recompute {
    struct opdi_recompute *next;
    int64_t id;                                   /* the number of the backward that needs the tensors; -1: none is
                                                     running */
    int64_t count, cap;
    opd_tensor **saved;
    bool stopped;                                 /* true: the run was stopped after it had saved all needed tensors */
} opdi_recompute;

/* A generator (NULL: the default generator) and its state at some time. */
typedef struct opdi_random_state { opd_generator *generator; uint64_t at[2]; } opdi_random_state;

typedef struct opdi_checkpoint {
    int32_t refs;
    opd_checkpoint_fn fn;                         /* the segment, if opd_checkpoint or opd_checkpoint_with was called;
                                                     else NULL */
    opd_transform_fn function;                    /* the segment, if opd_checkpoint_call was called; else NULL */
    void *user;
    opd_destroy destroy;
    opd_plugin *plugin;
    opdi_state state;
    opdi_random_state *random;                    /* the states of nrandom generators before the first run */
    int nrandom;
    bool stops;                                   /* true: a recomputation may end before the end of the segment */
    bool ran;                                     /* true: the first run has ended, so nsaved no longer changes */
    opd_value *inputs;                            /* ninputs values, in the form in which nodes keep arguments */
    bool *wants;                                  /* for each input: whether it requires grad */
    int ninputs, noutputs;
    int64_t nsaved, cap;
    uint64_t *shapes;                             /* for each saved tensor: a hash of its dtype, place and sizes */
    opdi_recompute *runs;
} opdi_checkpoint;

OPDI_INTERNAL opdi_mutex opdi_checkpoint_lock = OPDI_MUTEX_INIT;
/* Exchanges the current states of `count` generators with the states in `state`. */
static void opdi_random_swap(opdi_random_state *state, int count) {
    for (int i = 0; i < count; i++) {
        uint64_t now[2];
        opdi_random_get(state[i].generator, now);
        opdi_random_set(state[i].generator, state[i].at);
        memcpy(state[i].at, now, sizeof now);
    }
}

static void opdi_recompute_free(opdi_recompute *recompute) {
    for (int64_t i = 0; i < recompute->count; i++) {
        if (recompute->saved[i]) { opdi_drop(recompute->saved[i]); }
    }
    if (recompute->saved) { opdi_free(recompute->saved, (size_t)recompute->cap * sizeof *recompute->saved); }
    opdi_free(recompute, sizeof *recompute);
}

/* Drops a reference to the checkpoint `user`.  If it is the last reference, frees the checkpoint and everything that it
   holds. */
static void opdi_checkpoint_release(void *user) {
    opdi_checkpoint *checkpoint = (opdi_checkpoint *)user;
    if (OPDI_SUB(&checkpoint->refs, 1) > 0) { return; }
    while (checkpoint->runs) {
        opdi_recompute *recompute = checkpoint->runs;
        checkpoint->runs = recompute->next;
        opdi_recompute_free(recompute);
    }
    for (int i = 0; checkpoint->inputs && i < checkpoint->ninputs; i++) {
        opdi_kept_drop(NULL, &checkpoint->inputs[i]);
    }
    if (checkpoint->inputs) {
        opdi_free(checkpoint->inputs, (size_t)OPDI_MAX(checkpoint->ninputs, 1) * sizeof *checkpoint->inputs);
    }
    if (checkpoint->wants) {
        opdi_free(checkpoint->wants, (size_t)OPDI_MAX(checkpoint->ninputs, 1) * sizeof *checkpoint->wants);
    }
    if (checkpoint->shapes) { opdi_free(checkpoint->shapes, (size_t)checkpoint->cap * sizeof *checkpoint->shapes); }
    if (checkpoint->random) { opdi_free(checkpoint->random, (size_t)checkpoint->nrandom * sizeof *checkpoint->random); }
    if (checkpoint->destroy) { checkpoint->destroy(checkpoint->user); }
    if (checkpoint->plugin) { opdi_plugin_unpin(checkpoint->plugin); }
    opdi_free(checkpoint, sizeof *checkpoint);
}

/* Returns a hash of the dtype, the opdi_place and the sizes of `tensor`. */
static uint64_t opdi_shape_hash(const opd_tensor *tensor) {
    uint64_t ndim = (uint64_t)(uint8_t)tensor->dtype << 32 | (uint64_t)opdi_place_of(tensor) << 8 | tensor->ndim;
    for (int i = 0; i < tensor->ndim; i++) {
        ndim = (ndim ^ (uint64_t)tensor->dims[i]) * 0x9E3779B97F4A7C15u;
        ndim ^= ndim >> 29;
    }
    return ndim;
}

/* Makes space for element number `count` in the array *block, which has space for *cap elements of `size` bytes.  If
   the array is full, replaces it by an array of twice the size and updates *cap.  Returns 0, or -1 if memory runs
   out. */
OPDI_INTERNAL int opdi_grow(void **block, int64_t count, int64_t *cap, size_t size) {
    int64_t more = *cap ? 2 * *cap : 16;
    if (count < *cap) { return 0; }
    void *memory = opdi_alloc((size_t)more * size);
    if (!memory) { return -1; }
    if (*block) {
        memcpy(memory, *block, (size_t)count * size);
        opdi_free(*block, (size_t)*cap * size);
    }
    *block = memory;
    *cap = more;
    return 0;
}

/* The pack hook for the first run: counts the saved tensor, and returns its number (from 1, as a pointer) instead of
   the tensor. */
static void *opdi_checkpoint_count(opd_tensor *tensor, void *user) {
    opdi_checkpoint *checkpoint = (opdi_checkpoint *)user;
    void *shapes = checkpoint->shapes;
    if (opdi_grow(&shapes, checkpoint->nsaved, &checkpoint->cap, sizeof *checkpoint->shapes)) { return NULL; }
    checkpoint->shapes = (uint64_t *)shapes;
    checkpoint->shapes[checkpoint->nsaved] = opdi_shape_hash(tensor);
    return (void *)(intptr_t)++checkpoint->nsaved;
}

/* The user pointer of the pack hook for a recomputation: a checkpoint and its recomputation in progress. */
typedef struct opdi_recomputing { opdi_checkpoint *checkpoint; opdi_recompute *run; } opdi_recomputing;
/* The pack hook for a recomputation; `user` is an opdi_recomputing.  Keeps `tensor` as the next saved tensor, and
   returns its number (from 1, as a pointer).  Returns NULL and sets an error on failure, and also in order to end the
   recomputation after the last tensor that is needed. */
static void *opdi_checkpoint_collect(opd_tensor *tensor, void *user) {
    opdi_recomputing *at = (opdi_recomputing *)user;
    opdi_recompute *recompute = at->run;
    void *saved = recompute->saved;
    if (recompute->count < at->checkpoint->nsaved &&
        at->checkpoint->shapes[recompute->count] != opdi_shape_hash(tensor)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "opd_checkpoint: Recomputed values for the following tensors have different "
                       "metadata than during the forward pass. (saved tensor %lld)", (long long)recompute->count);
        return NULL;
    }
    if (opdi_grow(&saved, recompute->count, &recompute->cap, sizeof *recompute->saved)) { return NULL; }
    recompute->saved = (opd_tensor **)saved;
    recompute->saved[recompute->count++] = opd_keep(tensor);
    if (at->checkpoint->stops && recompute->count >= at->checkpoint->nsaved) {
        recompute->stopped = true;
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "opd_checkpoint: the recomputation has all tensors that are needed");
        return NULL;
    }
    return (void *)(intptr_t)recompute->count;
}
static opd_tensor *opdi_checkpoint_collected(void *packed, void *user) {
    const opdi_recompute *recompute = ((opdi_recomputing *)user)->run;
    int64_t i = (int64_t)(intptr_t)packed - 1;
    return i < recompute->count ? recompute->saved[i] : NULL;
}

/* Calls the segment with the inputs `inputs`.  Moves the results to the caller's scope and writes them to `outputs`,
   unless `outputs` is NULL.  Returns the number of results, or -1 and sets an error. */
static int opdi_checkpoint_call(const opdi_checkpoint *checkpoint, opd_tensor *const *inputs, opd_tensor **outputs) {
    opd_tensor *few[16], **out = few;
    if (checkpoint->noutputs > 16 &&
        !(out = (opd_tensor **)opdi_scope_alloc((size_t)checkpoint->noutputs * sizeof *out))) {
        return -1;
    }
    memset(out, 0, (size_t)checkpoint->noutputs * sizeof *out);
    const int count = checkpoint->function
        ? checkpoint->function(checkpoint->user, inputs, checkpoint->ninputs, out)
        : checkpoint->fn(inputs, checkpoint->ninputs, out, checkpoint->noutputs, checkpoint->user) ? -1
        : checkpoint->noutputs;
    if (count < 0 && opd_ok()) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "opd_checkpoint: the function failed without setting an error (opd_fail)");
    }
    if (count > checkpoint->noutputs && opd_ok()) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_checkpoint: the function returned %d outputs, but at most %d are "
                       "allowed", count, checkpoint->noutputs);
    }
    for (int i = 0; i < count && outputs && opd_ok(); i++) { outputs[i] = out[i] ? opd_scope_return(out[i]) : NULL; }
    return opd_ok() ? count : -1;
}

/* Runs the segment again, and collects the tensors that it saves in `recompute`.  Returns 0, or -1 and sets an
   error. */
static int opdi_checkpoint_again(opdi_checkpoint *checkpoint, opdi_recompute *recompute) {
    opdi_thread *thread = opdi_self();
    opdi_packer *outer = thread->innermost.packer;
    opdi_recomputing at;
    opd_saved_hooks hooks;
    opdi_frame frame;
    const char *off = thread->innermost.packers_off;
    int rc = 0;
    at.checkpoint = checkpoint;
    at.run = recompute;
    memset(&hooks, 0, sizeof hooks);
    hooks.pack = opdi_checkpoint_collect;
    hooks.unpack = opdi_checkpoint_collected;
    hooks.user = &at;
    opdi_frame_enter(thread, &frame);
    opd_tensor **inputs = (opd_tensor **)opdi_scope_alloc((size_t)OPDI_MAX(checkpoint->ninputs, 1) * sizeof *inputs);
    for (int i = 0; inputs && i < checkpoint->ninputs && opd_ok(); i++) {
        const opd_value *value = &checkpoint->inputs[i];
        opd_tensor *tensor = value->tag == OPDI_TAG_PACKED
            ? opdi_packed_saved_tensor((opdi_packed_saved *)value->u.object, false)
            : opdi_unpack(NULL, value, (uint32_t)value->n);
        inputs[i] = tensor ? opdi_own(opdi_shallow_copy(tensor)) : NULL;
        if (inputs[i] && checkpoint->wants[i]) { inputs[i]->flags |= OPDI_REQUIRES_GRAD; }
    }
    opdi_random_state *random = (opdi_random_state *)opdi_scope_alloc((size_t)OPDI_MAX(checkpoint->nrandom,
        1) * sizeof *random);
    thread->state = checkpoint->state;
    thread->innermost.packers_off = NULL;
    if (!inputs || !random || !opd_ok() || opd_saved_hooks_begin(&hooks)) { rc = -1; }
    if (rc == 0) {
        for (int i = 0; i < checkpoint->nrandom; i++) { random[i] = checkpoint->random[i]; }
        opdi_random_swap(random, checkpoint->nrandom);
        int mark = opd_error_mark();
        rc = opdi_checkpoint_call(checkpoint, inputs, NULL) < 0 ? -1 : 0;
        if (recompute->stopped) {
            (void)opd_error_rewind(mark);
            rc = 0;
        }
        opdi_random_swap(random, checkpoint->nrandom);
        while (thread->innermost.packer && thread->innermost.packer != outer) { opd_saved_hooks_end(); }
    }
    thread->innermost.packer = outer;
    thread->innermost.packers_off = off;
    opdi_frame_leave(thread, &frame);
    /* the autocast region that was restored for this run ends here */
    if (checkpoint->state.autocast && !thread->state.autocast) { opd_autocast_cache_clear(); }
    /* If a backward inside the first run recomputes the segment (`ran` is false), the recomputation runs the whole
       segment, and so may save more tensors than the first run has saved so far. */
    if (rc == 0 && recompute->count != checkpoint->nsaved &&
        (checkpoint->ran || recompute->count < checkpoint->nsaved)) {
        rc = opd_fail(OPD_ERROR_AUTOGRAD, "opd_checkpoint: A different number of tensors was saved during the original "
                      "forward and recomputation.\nNumber of tensors saved during forward: %lld\nNumber of tensors "
                      "saved during recomputation: %lld", (long long)checkpoint->nsaved, (long long)recompute->count);
    }
    return rc;
}

/* Removes the recomputation for backward number `id` from the checkpoint's list and returns it.  Returns NULL if there
   is none. */
static opdi_recompute *opdi_recompute_take(opdi_checkpoint *checkpoint, int64_t id) {
    opdi_recompute **at;
    opdi_lock(&opdi_checkpoint_lock);
    for (at = &checkpoint->runs; *at && (*at)->id != id; at = &(*at)->next) { }
    opdi_recompute *recompute = *at;
    if (recompute) { *at = recompute->next; }
    opdi_unlock(&opdi_checkpoint_lock);
    return recompute;
}
static void opdi_recompute_put(opdi_checkpoint *checkpoint, opdi_recompute *recompute) {
    opdi_lock(&opdi_checkpoint_lock);
    recompute->next = checkpoint->runs;
    checkpoint->runs = recompute;
    opdi_unlock(&opdi_checkpoint_lock);
}

/* Called at the end of a backward: frees the recomputation that was made for it.  Returns 0. */
static int opdi_checkpoint_over(void *user) {
    opdi_recompute *recompute = opdi_recompute_take((opdi_checkpoint *)user, opd_backward_id());
    if (recompute) { opdi_recompute_free(recompute); }
    return 0;
}
static void opdi_checkpoint_over_destroy(void *user) {
    (void)opdi_checkpoint_over(user);             /* also after an error */
    opdi_checkpoint_release(user);
}

/* The unpack hook: returns saved tensor number `packed`.  If this backward has not recomputed the segment, or has
   dropped the tensor, recomputes the segment first.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_checkpoint_unpack(void *packed, void *user) {
    opdi_checkpoint *checkpoint = (opdi_checkpoint *)user;
    const int64_t id = opd_backward_id(), i = (int64_t)(intptr_t)packed - 1;
    opdi_recompute *recompute = opdi_recompute_take(checkpoint, id);
    opd_tensor *tensor = NULL;
    int rc = 0;
    if (recompute && !recompute->saved[i]) {
        opdi_recompute_free(recompute);
        recompute = NULL;
    }
    if (!recompute) {
        recompute = (opdi_recompute *)opdi_alloc(sizeof *recompute);
        if (!recompute) { return NULL; }
        memset(recompute, 0, sizeof *recompute);
        recompute->id = id;
        rc = opdi_checkpoint_again(checkpoint, recompute);
        if (rc == 0 && id >= 0) {
            (void)OPDI_ADD(&checkpoint->refs, 1);
            rc = opd_backward_callback(opdi_checkpoint_over, checkpoint, opdi_checkpoint_over_destroy);
            if (rc) { opdi_checkpoint_release(checkpoint); }
        }
    }
    if (rc == 0) { tensor = opdi_own(opd_keep(recompute->saved[i])); }
    if (rc || id < 0) { opdi_recompute_free(recompute); } else { opdi_recompute_put(checkpoint, recompute); }
    return tensor;
}

/* The drop hook: drops a recomputed tensor after its node has run. */
static void opdi_checkpoint_drop(void *packed, void *user) {
    opdi_checkpoint *checkpoint = (opdi_checkpoint *)user;
    opdi_recompute *recompute = opdi_recompute_take(checkpoint, opd_backward_id());
    const int64_t i = (int64_t)(intptr_t)packed - 1;
    if (!recompute) { return; }
    if (recompute->saved[i]) {
        opdi_drop(recompute->saved[i]);
        recompute->saved[i] = NULL;
    }
    opdi_recompute_put(checkpoint, recompute);
}

/* Keeps `tensor`, input number `i`, in the form in which a node keeps a saved tensor, so that hooks of an outer segment
   can pack it.  The kept tensor has no history, even if the input gets one later, because the history could lead to the
   tensors that the segment saves.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_keep(opdi_checkpoint *checkpoint, int i, opd_tensor *tensor) {
    opdi_packer *packer = opdi_self()->innermost.packer;
    if (tensor && opdi_refresh(tensor)) { return -1; }
    checkpoint->wants[i] = tensor && opdi_requires_grad(tensor);
    if (tensor && !(tensor = opdi_own(opdi_shallow_copy(tensor)))) { return -1; }
    opd_value value = tensor ? opd_value_tensor(tensor) : opd_value_none();
    if (opdi_keep_value(&checkpoint->inputs[i], &value, true)) { return -1; }
    return tensor && packer ? opdi_pack_value(packer, NULL, &checkpoint->inputs[i], -1) : 0;
}

/* Stores the states of the generators that the segment may use: the default generator, unless the options exclude it,
   and the generators in the options.  Returns 0, or -1 if memory runs out. */
static int opdi_checkpoint_random(opdi_checkpoint *checkpoint, const opd_checkpoint_options *options) {
    const int own = !options || !options->no_preserve_rng_state, more = options ? options->ngenerators : 0;
    if (own + more == 0) { return 0; }
    if (!(checkpoint->random = (opdi_random_state *)opdi_alloc((size_t)(own + more) * sizeof *checkpoint->random))) {
        return -1;
    }
    checkpoint->nrandom = own + more;
    for (int i = 0; i < checkpoint->nrandom; i++) {
        checkpoint->random[i].generator = i < own ? NULL : options->generators[i - own];
        opdi_random_get(checkpoint->random[i].generator, checkpoint->random[i].at);
    }
    return 0;
}

/* Makes a checkpoint of the segment, which is `fn` or `function` (the other is NULL).  Returns the checkpoint, which
   keeps the inputs and the thread's state.  On failure, returns NULL and sets an error; the caller then still owns the
   user pointer. */
static opdi_checkpoint *opdi_checkpoint_make(opd_checkpoint_fn fn, opd_transform_fn function, void *user,
                                             opd_destroy destroy, opd_tensor *const *inputs, int ninputs, int noutputs,
                                             const opd_checkpoint_options *options) {
    opdi_checkpoint *checkpoint = (opdi_checkpoint *)opdi_alloc(sizeof *checkpoint);
    if (!checkpoint) { return NULL; }
    memset(checkpoint, 0, sizeof *checkpoint);
    checkpoint->refs = 1;
    checkpoint->fn = fn;
    checkpoint->function = function;
    checkpoint->user = user;
    checkpoint->plugin = opdi_plugin_hold(fn ? (uintptr_t)fn : (uintptr_t)function);
    checkpoint->state = opdi_self()->state;
    checkpoint->noutputs = noutputs;
    checkpoint->inputs = (opd_value *)opdi_alloc((size_t)OPDI_MAX(ninputs, 1) * sizeof *checkpoint->inputs);
    checkpoint->wants = checkpoint->inputs
        ? (bool *)opdi_alloc((size_t)OPDI_MAX(ninputs, 1) * sizeof *checkpoint->wants) : NULL;
    if (!checkpoint->wants && checkpoint->inputs) {
        opdi_free(checkpoint->inputs, (size_t)OPDI_MAX(ninputs, 1) * sizeof *checkpoint->inputs);
    }
    if (!checkpoint->wants) { checkpoint->inputs = NULL; }
    checkpoint->ninputs = checkpoint->wants ? ninputs : 0;
    for (int i = 0; i < checkpoint->ninputs; i++) { checkpoint->inputs[i] = opd_value_none(); }
    for (int i = 0; i < checkpoint->ninputs && !checkpoint->state.inference && opd_ok(); i++) {
        (void)opdi_checkpoint_keep(checkpoint, i, inputs[i]);
    }
    if (!opd_ok() || opdi_checkpoint_random(checkpoint, options)) {
        opdi_checkpoint_release(checkpoint);
        return NULL;
    }
    checkpoint->destroy = destroy;
    checkpoint->stops = !options || !options->no_early_stop;
    return checkpoint;
}

/* Runs a checkpointed segment, which is `fn` or `function` (the other is NULL), with hooks that number the tensors that
   it saves.  Returns the number of outputs.  On failure, returns -1, sets an error, and sets the outputs to NULL if
   their number is known. */
static int opdi_checkpoint_begin(opd_checkpoint_fn fn, opd_transform_fn function, void *user, opd_destroy destroy,
                                 opd_tensor *const *inputs, int ninputs, opd_tensor **outputs, int noutputs,
                                 const opd_checkpoint_options *options) {
    const int known = function ? 0 : noutputs;
    opdi_packer *outer = opdi_self()->innermost.packer;
    opd_saved_hooks hooks;
    if (!opd_ok()) { return opdi_no_tensors(outputs, known); }
    if ((!fn && !function) || ninputs < 0 || noutputs < 1 || (ninputs && !inputs) || !outputs) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_checkpoint: the function, the inputs and the outputs must not be NULL, "
                       "and there must be at least one output");
        return opdi_no_tensors(outputs, known);
    }
    if (options && (options->ngenerators < 0 || (options->ngenerators && !options->generators))) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_checkpoint: the pointer to the generators is NULL");
        return opdi_no_tensors(outputs, known);
    }
    if (opdi_any_dead(inputs, ninputs, "opd_checkpoint")) { return opdi_no_tensors(outputs, known); }
    opdi_checkpoint *checkpoint = opdi_checkpoint_make(fn, function, user, destroy, inputs, ninputs, noutputs,
                                                       options);
    (void)opdi_no_tensors(outputs, known);
    if (!checkpoint) { return -1; }
    memset(&hooks, 0, sizeof hooks);
    hooks.pack = opdi_checkpoint_count;
    hooks.unpack = opdi_checkpoint_unpack;
    hooks.drop = opdi_checkpoint_drop;
    hooks.destroy = opdi_checkpoint_release;
    hooks.user = checkpoint;
    opd_scope scope = opd_scope_open();
    int rc = checkpoint->state.inference ? 0 : opd_saved_hooks_begin(&hooks);
    if (rc) { checkpoint->destroy = NULL; }
    else {
        if (!checkpoint->state.inference) { (void)OPDI_ADD(&checkpoint->refs, 1); }
        rc = opdi_checkpoint_call(checkpoint, inputs, outputs);
        checkpoint->ran = true;
        while (opdi_self()->innermost.packer && opdi_self()->innermost.packer != outer) { opd_saved_hooks_end(); }
    }
    opd_scope_close(&scope);
    opdi_checkpoint_release(checkpoint);
    return rc < 0 ? opdi_no_tensors(outputs, known) : rc;
}
int opd_checkpoint_call(opd_transform_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs, int ninputs,
                        const opd_checkpoint_options *options, opd_tensor **outputs) {
    if (!fn) {
        return !opd_ok() ? -1 : opd_fail(OPD_ERROR_ARGUMENT, "opd_checkpoint_call: the function is NULL");
    }
    return opdi_checkpoint_begin(NULL, fn, user, destroy, inputs, ninputs, outputs, OPD_TRANSFORM_OUTPUTS, options);
}
int opd_checkpoint_with(opd_checkpoint_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs, int ninputs,
                        opd_tensor **outputs, int noutputs, const opd_checkpoint_options *options) {
    const int rc = opdi_checkpoint_begin(fn, NULL, user, destroy, inputs, ninputs, outputs, noutputs, options);
    return rc < 0 ? -1 : 0;
}
int opd_checkpoint(opd_checkpoint_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs, int ninputs,
                   opd_tensor **outputs, int noutputs) {
    return opd_checkpoint_with(fn, user, destroy, inputs, ninputs, outputs, noutputs, NULL);
}
