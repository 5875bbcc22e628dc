#include "transforms.h"

//== checkpoints =======================================================================================================
//
//  A segment is the function whose saved tensors are recomputed in backward.  It is recorded as usual, but its nodes
//  keep numbers instead of the tensors that they save.  When backward needs the first of these tensors, the segment
//  runs again, with the same inputs and random numbers.  It saves the same tensors in the same order, so the number of
//  a tensor tells which of them a node needs.
//
//  Recomputed tensors belong to one backward.  A tensor is dropped as soon as all nodes that keep its number are done.
//  All others are dropped at the end of that backward.
//
//  What happens around and inside of transforms:
//   - Layers and levels around the segment, such as opd_grad, opd_vmap or a level of forward mode: the segment runs
//     again in the same layers and levels, with inputs that have the same wrappers and tangents (opdi_surroundings).
//   - The gradient inside of a level needs the tangents of recomputed tensors.  An operator computes its tangents after
//     its node has saved its tensors, so a recomputation with a level around it does not end early.
//   - Higher derivatives: a recomputed tensor gets the history that it had in the first run.  Its tangents and the
//     value in its wrapper have the history of the recomputation, which begins at the history of the inputs.  Nodes
//     of the recomputation keep numbers, too.
//   - A backward inside of the segment needs saved tensors while the segment runs.  Nodes that are recorded inside of
//     a transform that the segment calls keep their tensors during the run.  If a backward asks for other tensors, the
//     segment runs again, and then all nodes keep their tensors until the end of the run.

/* A run of the segment: the first one, or a recomputation. */
typedef struct opdi_segment_run {
    opdi_keeping keeping;                         /* must be the first member, because innermost.keeping points to it */
    opdi_keeping *outer;                          /* innermost.keeping around the run */
    bool outer_tangents;                          /* innermost.tangents around the run */
    opd_key_guard guard;
    opdi_packer *packer, *hooks_around;           /* innermost.packer around the run, and around its hooks */
    const char *packers_off;                      /* innermost.packers_off around the run */
    opdi_surroundings_frame around;               /* the layers and levels around a recomputation */
    struct opdi_random_state *random;             /* the states of generators around a recomputation; NULL: not
                                                     exchanged */
    int mark;                                     /* opd_error_mark before a recomputation */
    int64_t calls;                                /* the number of calls that opdi_keeping_kernel has seen */
    int64_t at;                                   /* the index of the next kept result */
    int32_t refs;
    struct opdi_checkpoint *checkpoint;           /* a reference */
    struct opdi_segment_run *next;
    int64_t id;                                   /* the number of the backward that needs the tensors; -1: none is
                                                     running */
    int64_t count, cap;
    opd_tensor **saved;                           /* the saved tensors; NULL: not kept or dropped */
    int64_t wanted;                               /* the index of the tensor that has caused the recomputation */
    uint32_t tape;                                /* innermost.tape at the start of the run */
    bool first, running;
    bool tangents;                                /* true: the run also keeps tensors from which tangents are
                                                     computed */
    bool all;                                     /* true: the run keeps all tensors, because nodes of an earlier
                                                     recomputation need them */
    bool stopped;                                 /* true: the run was stopped after it had saved all needed tensors */
} opdi_segment_run;

/* A generator (NULL: the default generator) and its state at some time. */
typedef struct opdi_random_state { opd_generator *generator; uint64_t at[2]; } opdi_random_state;

/* What a checkpoint knows about a tensor that the first run saved: a hash of its dtype, place and sizes, the number of
   nodes of the first run that keep its number, and whether these nodes compute tangents. */
typedef struct opdi_seen { uint64_t shape; int32_t nodes; bool tangent; } opdi_seen;

/* A result that the first run has kept: one of the results of call number `call`.  `tensor` is a reference, or
   NULL if the result was undefined; `version` is its version when it was kept. */
typedef struct opdi_kept_result {
    opd_op *op;
    int64_t call;
    opd_tensor *tensor;
    uint32_t version;
} opdi_kept_result;

typedef struct opdi_checkpoint {
    int32_t refs;
    opd_checkpoint_fn fn;                         /* the segment, if opd_checkpoint or opd_checkpoint_with was called;
                                                     else NULL */
    opd_transform_fn function;                    /* the segment, if opd_checkpoint_call was called; else NULL */
    void *user;
    opd_destroy destroy;
    opd_plugin *plugin;
    opdi_state state;
    opdi_surroundings around;
    opdi_random_state *random;                    /* the states of nrandom generators before the first run */
    int nrandom;
    bool (*policy)(opd_call *call, void *user);   /* opd_checkpoint_options.keeps, or NULL */
    void *policy_user;
    opdi_kept_result *results;                    /* nresults results, in the order of the calls */
    int64_t nresults, results_cap;
    bool stops;                                   /* true: a recomputation may end before the end of the segment */
    bool ran;                                     /* true: the first run has ended, so nsaved no longer changes */
    bool keeps;                                   /* true: runs keep all saved tensors until they end */
    opdi_input_part **inputs;                     /* ninputs inputs; NULL: the input is NULL */
    int ninputs, noutputs;
    int64_t nsaved, cap;
    opdi_seen *seen;                              /* nsaved elements */
    opdi_segment_run *runs;                       /* recomputations that have ended, for backwards that have not */
} opdi_checkpoint;

OPDI_INTERNAL void opdi_fake_reach(void);
OPDI_INTERNAL opdi_mutex opdi_checkpoint_lock = OPDI_MUTEX_INIT;
/* Exchanges the current states of `count` generators with the states in `state`, unless this is NULL. */
static void opdi_random_swap(opdi_random_state *state, int count) {
    for (int i = 0; i < count && state; i++) {
        uint64_t now[2];
        opdi_random_get(state[i].generator, now);
        opdi_random_set(state[i].generator, state[i].at);
        memcpy(state[i].at, now, sizeof now);
    }
}

/* Drops the tensors that a run has kept. */
static void opdi_segment_clear(opdi_segment_run *run) {
    for (int64_t i = 0; i < run->count; i++) {
        if (run->saved[i]) { opdi_drop(run->saved[i]); }
    }
    if (run->saved) { opdi_free(run->saved, (size_t)run->cap * sizeof *run->saved); }
    run->saved = NULL;
    run->count = run->cap = 0;
}
/* Drops saved tensor number `i` of a run. */
static void opdi_segment_forget(opdi_segment_run *run, int64_t i) {
    if (i >= run->count || !run->saved[i]) { return; }
    opdi_drop(run->saved[i]);
    run->saved[i] = NULL;
}

/* Drops a reference to a checkpoint.  If it is the last reference, frees the checkpoint and everything that it
   holds. */
static void opdi_checkpoint_release(opdi_checkpoint *checkpoint) {
    if (OPDI_SUB(&checkpoint->refs, 1) > 0) { return; }
    for (int i = 0; i < checkpoint->ninputs; i++) { opdi_input_part_free(checkpoint->inputs[i]); }
    if (checkpoint->inputs) {
        opdi_free(checkpoint->inputs, (size_t)OPDI_MAX(checkpoint->ninputs, 1) * sizeof *checkpoint->inputs);
    }
    opdi_surroundings_free(&checkpoint->around);
    if (checkpoint->seen) { opdi_free(checkpoint->seen, (size_t)checkpoint->cap * sizeof *checkpoint->seen); }
    for (int64_t i = 0; i < checkpoint->nresults; i++) { opdi_release(checkpoint->results[i].tensor); }
    if (checkpoint->results) {
        opdi_free(checkpoint->results, (size_t)checkpoint->results_cap * sizeof *checkpoint->results);
    }
    if (checkpoint->random) { opdi_free(checkpoint->random, (size_t)checkpoint->nrandom * sizeof *checkpoint->random); }
    if (checkpoint->destroy) { checkpoint->destroy(checkpoint->user); }
    if (checkpoint->plugin) { opdi_plugin_unpin(checkpoint->plugin); }
    opdi_free(checkpoint, sizeof *checkpoint);
}

/* Makes a run with one reference.  Returns NULL if memory runs out. */
static opdi_segment_run *opdi_segment_new(opdi_checkpoint *checkpoint, bool first) {
    opdi_segment_run *run = (opdi_segment_run *)opdi_alloc(sizeof *run);
    if (!run) { return NULL; }
    memset(run, 0, sizeof *run);
    (void)OPDI_ADD(&checkpoint->refs, 1);
    run->refs = 1;
    run->checkpoint = checkpoint;
    run->first = first;
    run->id = -1;
    return run;
}
/* Drops a reference to the run `user`. */
static void opdi_segment_release(void *user) {
    opdi_segment_run *run = (opdi_segment_run *)user;
    if (OPDI_SUB(&run->refs, 1) > 0) { return; }
    opdi_segment_clear(run);
    opdi_checkpoint_release(run->checkpoint);
    opdi_free(run, sizeof *run);
}

/* Drops a reference to a run and the tensors that it has kept: nodes of the run that are left recompute them. */
static void opdi_segment_done(opdi_segment_run *run) {
    opdi_segment_clear(run);
    opdi_segment_release(run);
}

/* Returns a hash of the dtype, the opdi_place and the sizes of `tensor`. */
static uint64_t opdi_shape_hash(const opd_tensor *tensor) {
    uint64_t ndim = (uint64_t)(uint32_t)tensor->dtype << 32 | (uint64_t)opdi_place_of(tensor) << 8 | tensor->ndim;
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

/* Numbers the next tensor that the first run saves.  Returns 0, or -1 if memory runs out. */
static int opdi_segment_number(opdi_segment_run *run, const opd_tensor *tensor) {
    opdi_checkpoint *checkpoint = run->checkpoint;
    void *seen = checkpoint->seen;
    if (opdi_grow(&seen, checkpoint->nsaved, &checkpoint->cap, sizeof *checkpoint->seen)) { return -1; }
    checkpoint->seen = (opdi_seen *)seen;
    checkpoint->seen[checkpoint->nsaved].shape = opdi_shape_hash(tensor);
    checkpoint->seen[checkpoint->nsaved].tangent = opdi_self()->innermost.tangents;
    checkpoint->seen[checkpoint->nsaved++].nodes = 0;
    return 0;
}
/* Returns true if a run keeps the saved tensor number `i`, until the run ends or, if it is a recomputation, until the
   backward ends.  In a level of forward mode, the nodes that compute tangents are often not part of the backward, and
   would keep their tensors until its end.  So their tensors are kept only after one of them was needed. */
static bool opdi_segment_keeps(const opdi_segment_run *run, int64_t i) {
    const opdi_checkpoint *checkpoint = run->checkpoint;
    if (checkpoint->keeps || run->all || opdi_self()->innermost.tape != run->tape) { return true; }
    if (run->first || i >= checkpoint->nsaved || i == run->wanted) { return !run->first; }
    return OPDI_LOAD(&checkpoint->seen[i].nodes) > 0 && (run->tangents || !checkpoint->seen[i].tangent);
}
/* The pack hook; `user` is a run.  Returns the number of the tensor (from 1) as a pointer.  Returns NULL and sets an
   error on failure, and also in order to end a recomputation after the last tensor that is needed. */
static void *opdi_segment_pack(opd_tensor *tensor, void *user) {
    opdi_segment_run *run = (opdi_segment_run *)user;
    opdi_checkpoint *checkpoint = run->checkpoint;
    const int64_t i = run->first ? checkpoint->nsaved : run->count;
    void *saved = run->saved;
    if (run->first && opdi_segment_number(run, tensor)) { return NULL; }
    if (i < checkpoint->nsaved && checkpoint->seen[i].shape != opdi_shape_hash(tensor)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "opd_checkpoint: Recomputed values for the following tensors have different "
                       "metadata than during the forward pass. (saved tensor %lld)", (long long)i);
        return NULL;
    }
    if (run->running) {
        if (opdi_grow(&saved, run->count, &run->cap, sizeof *run->saved)) { return NULL; }
        run->saved = (opd_tensor **)saved;
        run->saved[run->count++] = opdi_segment_keeps(run, i) ? opdi_keep(tensor) : NULL;
        if (!run->first && checkpoint->stops && run->count >= checkpoint->nsaved) {
            run->stopped = true;
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "opd_checkpoint: the recomputation has all tensors that are needed");
            return NULL;
        }
    }
    if (run->first) { (void)OPDI_ADD(&checkpoint->seen[i].nodes, 1); }
    return (void *)(intptr_t)(i + 1);
}

/* Returns true if the results of a call can be kept: it is not random, writes nothing, and has only tensors as results,
   which are no views. */
static bool opdi_keeping_can(const opd_call *call) {
    const opd_op *op = call->op;
    if (op->written_args || opdi_op_is_random(call->op) || !op->nrets) { return false; }
    for (int i = 0; i < op->nrets; i++) {
        if (!(op->tensor_rets >> i & 1) || opd_schema_is_aliasing(op->schema, OPD_RESULT(i))) { return false; }
    }
    return true;
}
/* Keeps the results of a call.  Returns 0, or -1 if memory runs out. */
static int opdi_keeping_add(opdi_checkpoint *checkpoint, const opd_call *call, int64_t number) {
    for (int i = 0; i < call->op->nrets; i++) {
        void *results = checkpoint->results;
        opd_tensor *tensor = call->rets[i].tag == OPD_TAG_TENSOR ? call->rets[i].u.t : NULL;
        if (opdi_grow(&results, checkpoint->nresults, &checkpoint->results_cap, sizeof *checkpoint->results)) {
            return -1;
        }
        checkpoint->results = (opdi_kept_result *)results;
        opdi_kept_result *kept = &checkpoint->results[checkpoint->nresults];
        kept->op = call->op;
        kept->call = number;
        kept->version = tensor ? OPDI_LOAD(&tensor->storage->version) : 0;
        kept->tensor = tensor ? opdi_shallow_copy(tensor) : NULL;
        if (tensor && !kept->tensor) { return -1; }
        checkpoint->nresults++;
    }
    return 0;
}
/* Returns a kept result of a call, for the recomputation, in the innermost scope.  Returns NULL and sets an error on
   failure. */
static opd_tensor *opdi_keeping_result(const opdi_kept_result *kept, const opd_call *call) {
    if (kept->op != call->op) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "opd_checkpoint: the second call of the function runs %s where the first "
                       "call ran %s. The function must do the same in each call", call->op->name, kept->op->name);
        return NULL;
    }
    if (OPDI_LOAD(&kept->tensor->storage->version) != kept->version) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "opd_checkpoint: a result of %s, which opd_checkpoint_options.keeps has "
                       "kept, was overwritten. Let `keeps` return false for this call, or do not write to the result",
                       call->op->name);
        return NULL;
    }
    opd_tensor *tensor = opdi_own(opdi_shallow_copy(kept->tensor));
    return tensor && opdi_is_dual(tensor) && opdi_family_new(tensor) ? NULL : tensor;
}
/* Sets the results of a call to results that the first run has kept.  Returns 0, or -1 and sets an error. */
static int opdi_keeping_return(opdi_segment_run *run, opd_call *call) {
    for (int i = 0; i < call->op->nrets; i++, run->at++) {
        const opdi_kept_result *kept = &run->checkpoint->results[run->at];
        opd_tensor *tensor = kept->tensor ? opdi_keeping_result(kept, call) : NULL;
        if (!tensor && !opd_ok()) { return -1; }
        if (tensor ? opd_return_tensor(call, tensor) : opd_return_value(call, opd_value_none())) { return -1; }
    }
    return 0;
}
/* The kernel in a run whose checkpoint keeps results.  In the first run, asks the program whether to keep the results.
   In a recomputation, takes the results that are kept.  Operators that the call's kernel calls do not come here. */
static int opdi_keeping_kernel(opd_call *call) {
    opdi_thread *thread = call->th;
    opdi_segment_run *run = (opdi_segment_run *)(void *)thread->innermost.keeping;
    opdi_checkpoint *checkpoint = run->checkpoint;
    const int64_t number = run->calls++;
    if (!run->first && run->at < checkpoint->nresults && checkpoint->results[run->at].call == number) {
        return opdi_keeping_return(run, call);
    }
    thread->innermost.keeping = NULL;
    const bool keep = run->first && opdi_keeping_can(call) && checkpoint->policy(call, checkpoint->policy_user);
    int rc = opd_ok() ? opd_redispatch(call, call->keys) : -1;
    if (rc == 0 && keep) { rc = opdi_keeping_add(checkpoint, call, number); }
    thread->innermost.keeping = &run->keeping;
    return rc;
}

/* Calls the segment with the inputs `inputs`.  Moves the results to the caller's scope and writes them to `outputs`,
   unless `outputs` is NULL.  Returns the number of results, or -1 and sets an error. */
static int opdi_checkpoint_call(const opdi_checkpoint *checkpoint, opd_tensor *const *inputs, opd_tensor **outputs,
                                int cap) {
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
    if (outputs && count > cap && opd_ok()) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_checkpoint: the function returned %d outputs, but the array for them "
                       "has room for %d: pass a longer array, and its length", count, cap);
    }
    if (opd_ok() && opdi_any_dead_output(out, count, "opd_checkpoint")) { return -1; }
    for (int i = 0; i < count && outputs && opd_ok(); i++) { outputs[i] = out[i] ? opd_scope_return(out[i]) : NULL; }
    return opd_ok() ? count : -1;
}

/* Puts the inputs together again and writes them to `inputs`.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_inputs(const opdi_checkpoint *checkpoint, opdi_level *const *levels, opd_tensor **inputs) {
    for (int i = 0; i < checkpoint->ninputs; i++) {
        const opdi_input_part *part = checkpoint->inputs[i];
        inputs[i] = part ? opdi_input_part_make(part, levels) : NULL;
        if (part && !inputs[i]) { return -1; }
    }
    return 0;
}
OPDI_INTERNAL opd_tensor *opdi_segment_unpack(void *packed, void *user);
OPDI_INTERNAL void opdi_segment_drop(void *packed, void *user);
/* Pushes hooks that number the tensors that a run saves.  Returns 0, or -1 and sets an error. */
static int opdi_segment_begin(opdi_segment_run *run) {
    opdi_thread *thread = opdi_self();
    opd_saved_hooks hooks;
    memset(&hooks, 0, sizeof hooks);
    hooks.pack = opdi_segment_pack;
    hooks.unpack = opdi_segment_unpack;
    hooks.drop = opdi_segment_drop;
    hooks.destroy = opdi_segment_release;
    hooks.user = run;
    run->hooks_around = thread->innermost.packer;
    if (opd_saved_hooks_begin(&hooks)) { return -1; }
    (void)OPDI_ADD(&run->refs, 1);
    thread->innermost.packer->whole = true;
    run->tape = thread->innermost.tape;
    run->running = true;
    run->outer_tangents = thread->innermost.tangents;
    thread->innermost.tangents = false;
    run->outer = thread->innermost.keeping;
    run->keeping.kernel = opdi_keeping_kernel;
    if (run->checkpoint->policy) { opdi_fake_reach(); }
    run->guard = opd_keys_include(opd_keyset_make(run->checkpoint->policy ? OPD_BIT_OF(OPD_F_FAKE) : 0, 0));
    if (run->checkpoint->policy) { thread->innermost.keeping = &run->keeping; }
    else if (!run->first) { thread->innermost.keeping = NULL; }
    return 0;
}
/* Pops the hooks of a run, and those that the segment has left open. */
static void opdi_segment_end(opdi_segment_run *run) {
    opdi_thread *thread = opdi_self();
    if (!run->running) { return; }
    run->running = false;
    thread->innermost.keeping = run->outer;
    thread->innermost.tangents = run->outer_tangents;
    opd_keys_restore(run->guard);
    while (thread->innermost.packer && thread->innermost.packer != run->hooks_around) { opd_saved_hooks_end(); }
}
/* Ends the first run of a segment whose function an exception or a longjmp has left. */
static void opdi_segment_leave(opdi_visit *visit) {
    opdi_segment_run *run = (opdi_segment_run *)visit->user;
    opdi_checkpoint *checkpoint = run->checkpoint;
    opdi_packers_leave(visit);
    if (opdi_self()->innermost.packer != visit->innermost.packer) {
        run->running = false;                     /* its hooks have ended */
    }
    opdi_segment_end(run);
    checkpoint->ran = true;
    opdi_segment_done(run);
    opdi_checkpoint_release(checkpoint);
}

/* Runs the segment again.  Returns 0, or -1 and sets an error. */
static int opdi_segment_again(opdi_segment_run *run, opd_tensor *const *inputs) {
    const opdi_checkpoint *checkpoint = run->checkpoint;
    opdi_random_state *random = (opdi_random_state *)opdi_scope_alloc((size_t)OPDI_MAX(checkpoint->nrandom,
        1) * sizeof *random);
    if (!random || opdi_segment_begin(run)) { return -1; }
    for (int i = 0; i < checkpoint->nrandom; i++) { random[i] = checkpoint->random[i]; }
    opdi_random_swap(random, checkpoint->nrandom);
    run->random = random;
    return opdi_checkpoint_call(checkpoint, inputs, NULL, 0) < 0 ? -1 : 0;
}
/* Ends a recomputation: restores the generators, hooks, layers and levels around it, and clears the error with which it
   was stopped. */
static void opdi_segment_again_end(opdi_segment_run *run) {
    opdi_thread *thread = opdi_self();
    if (run->stopped) { (void)opd_error_rewind(run->mark); }
    opdi_random_swap(run->random, run->checkpoint->nrandom);
    run->random = NULL;
    opdi_segment_end(run);
    thread->innermost.packer = run->packer;
    thread->innermost.packers_off = run->packers_off;
    opdi_surroundings_close(&run->around);
}
/* Ends a recomputation whose function an exception or a longjmp has left. */
static void opdi_segment_again_leave(opdi_visit *visit) {
    opdi_segment_run *run = (opdi_segment_run *)visit->user;
    opdi_scope_end_all(opdi_self(), visit->top);
    opdi_segment_again_end(run);
    opdi_segment_done(run);
}
/* Runs the segment again in the layers, levels and modes of the first run.  Keeps in `run` the tensors that it saves.
   Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_again(opdi_checkpoint *checkpoint, opdi_segment_run *run) {
    opdi_thread *thread = opdi_self();
    opdi_frame frame;
    opdi_visit_frame visit;
    run->mark = opd_error_mark();
    run->packer = thread->innermost.packer;
    run->packers_off = thread->innermost.packers_off;
    opdi_visit_begin(thread, &visit, "the function of a checkpoint", opdi_segment_again_leave, run);
    opdi_frame_enter(thread, &frame);
    opd_tensor **inputs = opdi_scope_tensors(OPDI_MAX(checkpoint->ninputs, 1));
    int rc = opdi_surroundings_open(&checkpoint->around, &run->around);
    thread->state = checkpoint->state;
    thread->innermost.packers_off = NULL;
    thread->innermost.packer = NULL;              /* tensors that making the inputs saves are not packed */
    if (rc == 0) { rc = inputs ? opdi_checkpoint_inputs(checkpoint, run->around.levels, inputs) : -1; }
    if (rc == 0) { rc = opdi_segment_again(run, inputs); }
    if (run->stopped) { rc = 0; }
    opdi_segment_again_end(run);
    opdi_visit_end(&visit);
    opdi_frame_leave(thread, &frame);
    /* the autocast region that was restored for this run ends here */
    if (checkpoint->state.autocast && !thread->state.autocast) { opd_autocast_cache_clear(); }
    /* If a backward inside the first run recomputes the segment (`ran` is false), the recomputation runs the whole
       segment, and so may save more tensors than the first run has saved so far. */
    if (rc == 0 && run->count != checkpoint->nsaved && (checkpoint->ran || run->count < checkpoint->nsaved)) {
        rc = opd_fail(OPD_ERROR_AUTOGRAD, "opd_checkpoint: A different number of tensors was saved during the original "
                      "forward and recomputation.\nNumber of tensors saved during forward: %lld\nNumber of tensors "
                      "saved during recomputation: %lld\nThe function must do the same in each call, and tensors that "
                      "a transform around it has made must be its inputs", (long long)checkpoint->nsaved,
                      (long long)run->count);
    }
    return rc;
}

/* Removes the recomputation for backward number `id` from the checkpoint's list and returns it.  Returns NULL if there
   is none. */
static opdi_segment_run *opdi_segment_take(opdi_checkpoint *checkpoint, int64_t id) {
    opdi_segment_run **at;
    opdi_lock(&opdi_checkpoint_lock);
    for (at = &checkpoint->runs; *at && (*at)->id != id; at = &(*at)->next) { }
    opdi_segment_run *run = *at;
    if (run) { *at = run->next; }
    opdi_unlock(&opdi_checkpoint_lock);
    return run;
}
static void opdi_segment_put(opdi_checkpoint *checkpoint, opdi_segment_run *run) {
    opdi_lock(&opdi_checkpoint_lock);
    run->next = checkpoint->runs;
    checkpoint->runs = run;
    opdi_unlock(&opdi_checkpoint_lock);
}

/* Called at the end of a backward: frees the recomputation that was made for it.  Returns 0. */
static int opdi_checkpoint_over(void *user) {
    opdi_segment_run *run = opdi_segment_take((opdi_checkpoint *)user, opd_backward_id());
    if (run) { opdi_segment_done(run); }
    return 0;
}
static void opdi_checkpoint_over_destroy(void *user) {
    (void)opdi_checkpoint_over(user);             /* also after an error */
    opdi_checkpoint_release((opdi_checkpoint *)user);
}

/* Recomputes the segment, because backward number `id` needs saved tensor number `wanted`.  Returns the run, or NULL
   and sets an error. */
static opdi_segment_run *opdi_checkpoint_recompute(opdi_checkpoint *checkpoint, int64_t id, int64_t wanted) {
    opdi_segment_run *run = opdi_segment_new(checkpoint, false);
    if (!run) { return NULL; }
    run->id = id;
    run->wanted = wanted;
    const opdi_seen *seen = wanted < checkpoint->nsaved ? &checkpoint->seen[wanted] : NULL;
    run->tangents = !checkpoint->around.levels || (seen && seen->tangent);
    run->all = seen && OPDI_LOAD(&seen->nodes) == 0;
    int rc = opdi_checkpoint_again(checkpoint, run);
    if (rc == 0 && id >= 0) {
        (void)OPDI_ADD(&checkpoint->refs, 1);
        rc = opd_backward_callback(opdi_checkpoint_over, checkpoint, opdi_checkpoint_over_destroy);
        if (rc) { opdi_checkpoint_release(checkpoint); }
    }
    if (rc == 0) { return run; }
    opdi_segment_done(run);
    return NULL;
}
/* The unpack hook; `user` is a run.  Returns the saved tensor with the number in `packed`: from this run if it has not
   ended, or from a recomputation for this backward.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opd_tensor *opdi_segment_unpack(void *packed, void *user) {
    opdi_segment_run *run = (opdi_segment_run *)user;
    opdi_checkpoint *checkpoint = run->checkpoint;
    const int64_t id = opd_backward_id(), i = (int64_t)(intptr_t)packed - 1;
    if (run->running && i < run->count && run->saved[i]) { return opdi_own(opdi_keep(run->saved[i])); }
    if (run->running) { checkpoint->keeps = true; }
    opdi_segment_run *made = opdi_segment_take(checkpoint, id);
    if (made && !(i < made->count && made->saved[i])) {
        opdi_segment_done(made);
        made = NULL;
    }
    if (!made && !(made = opdi_checkpoint_recompute(checkpoint, id, i))) { return NULL; }
    opd_tensor *tensor = i < made->count && made->saved[i] ? opdi_own(opdi_keep(made->saved[i])) : NULL;
    if (!tensor && opd_ok()) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "opd_checkpoint: the recomputation has not saved tensor number %lld. The "
                       "function must do the same in each call", (long long)i);
    }
    if (id < 0) { opdi_segment_done(made); } else { opdi_segment_put(checkpoint, made); }
    return tensor;
}

/* The drop hook; `user` is a run.  If no node of the first run keeps the number any more, drops the tensor.  Nodes of
   recomputations do not count: tangents in the recomputed tensors would keep them until the end of the backward. */
OPDI_INTERNAL void opdi_segment_drop(void *packed, void *user) {
    opdi_segment_run *run = (opdi_segment_run *)user;
    opdi_checkpoint *checkpoint = run->checkpoint;
    const int64_t i = (int64_t)(intptr_t)packed - 1;
    if (run->first ? OPDI_SUB(&checkpoint->seen[i].nodes, 1) > 0
        : i < checkpoint->nsaved && OPDI_LOAD(&checkpoint->seen[i].nodes) > 0) { return; }
    if (run->running && !run->all) { opdi_segment_forget(run, i); }
    if (!run->first) { return; }
    opdi_segment_run *made = opdi_segment_take(checkpoint, opd_backward_id());
    if (!made) { return; }
    opdi_segment_forget(made, i);
    opdi_segment_put(checkpoint, made);
}

/* Takes the inputs apart and keeps them.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_keep(opdi_checkpoint *checkpoint, opd_tensor *const *inputs, int count) {
    checkpoint->inputs = (opdi_input_part **)opdi_alloc((size_t)OPDI_MAX(count, 1) * sizeof *checkpoint->inputs);
    if (!checkpoint->inputs) { return -1; }
    memset(checkpoint->inputs, 0, (size_t)OPDI_MAX(count, 1) * sizeof *checkpoint->inputs);
    checkpoint->ninputs = count;
    if (checkpoint->state.inference) { return 0; }
    if (opdi_surroundings_take(&checkpoint->around)) { return -1; }
    for (int i = 0; i < count; i++) {
        if (!inputs[i]) { continue; }
        checkpoint->inputs[i] = opdi_input_part_keep(&checkpoint->around, inputs[i], checkpoint->around.count);
        if (!checkpoint->inputs[i]) { return -1; }
    }
    return 0;
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
    if (opdi_checkpoint_keep(checkpoint, inputs, ninputs) || opdi_checkpoint_random(checkpoint, options)) {
        opdi_checkpoint_release(checkpoint);
        return NULL;
    }
    checkpoint->destroy = destroy;
    checkpoint->policy = options ? options->keeps : NULL;
    checkpoint->policy_user = options ? options->keeps_user : NULL;
    checkpoint->stops = (!options || !options->no_early_stop) && !checkpoint->around.levels;
    return checkpoint;
}
/* Runs the segment for the first time.  Returns the number of outputs, or -1 and sets an error. */
static int opdi_checkpoint_first(opdi_checkpoint *checkpoint, opd_tensor *const *inputs, opd_tensor **outputs,
                                 int cap) {
    opdi_visit_frame visit;
    opdi_segment_run *run = opdi_segment_new(checkpoint, true);
    if (!run || (!checkpoint->state.inference && opdi_segment_begin(run))) {
        checkpoint->destroy = NULL;               /* the caller still owns the user pointer */
        if (run) { opdi_segment_release(run); }
        return -1;
    }
    opdi_visit_begin(opdi_self(), &visit, "the function of a checkpoint", opdi_segment_leave, run);
    const int rc = opdi_checkpoint_call(checkpoint, inputs, outputs, cap);
    opdi_visit_end(&visit);
    checkpoint->ran = true;
    opdi_segment_end(run);
    opdi_segment_done(run);
    return rc;
}

/* Runs a checkpointed segment, which is `fn` or `function` (the other is NULL), with hooks that number the tensors that
   it saves.  `outputs` has room for `cap`: `fn` writes as many.  Returns the number of outputs.  On failure, returns
   -1, sets an error, and sets the outputs to NULL.  `function` may have fewer outputs than `cap`: of its outputs, only
   the first is set to NULL. */
static int opdi_checkpoint_begin(opd_checkpoint_fn fn, opd_transform_fn function, void *user, opd_destroy destroy,
                                 opd_tensor *const *inputs, int ninputs, opd_tensor **outputs, int cap,
                                 const opd_checkpoint_options *options) {
    const int known = function ? OPDI_MIN(cap, 1) : cap;
    if (opdi_visits_left(opdi_self()) || !opd_ok()) { return opdi_no_tensors(outputs, known); }
    if ((!fn && !function) || ninputs < 0 || cap < (fn ? 1 : 0) || (ninputs && !inputs) || !outputs) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_checkpoint: the function, the inputs and the outputs must not be NULL, "
                       "and there must be at least one output");
        return opdi_no_tensors(outputs, known);
    }
    if (options && (options->ngenerators < 0 || (options->ngenerators && !options->generators))) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_checkpoint: the pointer to the generators is NULL");
        return opdi_no_tensors(outputs, known);
    }
    if (opdi_any_dead(inputs, ninputs, "opd_checkpoint")) { return opdi_no_tensors(outputs, known); }
    opdi_checkpoint *checkpoint = opdi_checkpoint_make(fn, function, user, destroy, inputs, ninputs,
                                                       fn ? cap : OPD_TRANSFORM_OUTPUTS, options);
    if (!checkpoint) { return opdi_no_tensors(outputs, known); }
    opd_scope scope = opd_scope_open();
    const int rc = opdi_checkpoint_first(checkpoint, inputs, outputs, cap);
    opd_scope_close(&scope);
    opdi_checkpoint_release(checkpoint);
    return rc < 0 ? opdi_no_tensors(outputs, known) : rc;
}
int opd_checkpoint_call(opd_transform_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs, int ninputs,
                        const opd_checkpoint_options *options, opd_tensor **outputs, int cap) {
    if (!fn) {
        if (opd_ok()) { (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_checkpoint_call: the function is NULL"); }
        return opdi_no_tensors(outputs, OPDI_MIN(cap, 1));
    }
    return opdi_checkpoint_begin(NULL, fn, user, destroy, inputs, ninputs, outputs, cap, options);
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
