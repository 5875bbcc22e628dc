#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>choosing     choosing the faster way to run compiled code
//
//  After a graph has been compiled for a kind of inputs, its code runs several times.  For each product and
//  convolution, these runs show whether the loops or a kernel of the library is faster; and they show whether the code
//  is faster than uncompiled runs.  Timed runs write copies of tensors, so they change nothing.
//----------------------------------------------------------------------------------------------------------------------

/* CHOICE_ROUNDS, GUARD_ROUNDS: the most pairs of runs that are compared.  MOST: no further pair begins after this time,
   in nanoseconds.  GUARD_LEAST: code that takes less time is not compared with uncompiled runs, because a disturbance
   could decide. */
enum { OPDI_CHOICE_ROUNDS = 4, OPDI_GUARD_ROUNDS = 5, OPDI_CHOICE_MOST = 200000000, OPDI_GUARD_LEAST = 200000 };

/* Returns the time in nanoseconds: the processor time of this thread, or the real time if kernels use several
   threads. */
static int64_t opdi_choice_clock(void) {
#if defined(CLOCK_THREAD_CPUTIME_ID) && !defined(_WIN32)
    struct timespec now;
    if (opd_threads() == 1 && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0) {
        return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    }
#endif
    return opdi_clock();
}
/* Compiled code calls this function before and after each nest that a kernel of the library can compute. */
static void opdi_variant_clock(void *context, int which) {
    opdi_variant *const variant = (opdi_variant *)context;
    const int64_t now = opdi_choice_clock();
    if (which >= 0) {
        variant->timed = which;
        variant->started = now;
        return;
    }
    int64_t *const best = &variant->times[variant->timed][variant->ways[variant->timed]];
    const int64_t time = OPDI_MAX(now - variant->started, (int64_t)1);
    if (!*best || time < *best) { *best = time; }
}
/* Returns a copy of a tensor, with the same strides, for a run that writes it. */
static opd_tensor *opdi_choice_copy(opd_tensor *tensor) {
    opd_tensor *const copy = opd_empty_strided(opd_ints_of(opd_sizes(tensor), opd_ndim(tensor)),
                                               opd_ints_of(opd_strides(tensor), opd_ndim(tensor)), opd_dtype(tensor));
    return copy ? opd_copy_(copy, tensor) : NULL;
}
/* Returns the inputs of a timed run: copies of those that the code writes, and the others themselves.  They belong to
   the innermost scope.  On failure, returns NULL and sets an error. */
static opd_value *opdi_choice_inputs(const opdi_variant *variant, const opd_value *inputs) {
    opd_value *const all = (opd_value *)opdi_scope_alloc((size_t)(variant->ninputs + 1) * sizeof *all);
    for (int i = 0, end = 0; i < variant->ninputs && all; i++) {
        all[i] = inputs[i];
        if (inputs[i].tag != OPD_TAG_TENSOR || !variant->written[end++]) { continue; }
        opd_tensor *const copy = opdi_choice_copy(inputs[i].u.t);
        if (!copy) { return NULL; }
        all[i] = opd_value_tensor(copy);
    }
    return all;
}
/* Runs the code of a variant once, on copies of the tensors that it writes.  Returns the time in nanoseconds, or -1 if
   it cannot run. */
static int64_t opdi_variant_timed(opdi_variant *variant, const opd_value *inputs) {
    opdi_open_at at;
    int64_t time = -1;
    opd_scope scope = opd_scope_open();
    opd_tensor **const all = (opd_tensor **)opdi_scope_alloc((size_t)(variant->nends + 1) * sizeof *all);
    opd_value *const results = (opd_value *)opdi_scope_alloc((size_t)(variant->nresults + 1) * sizeof *results);
    const opd_value *const given = all && results ? opdi_choice_inputs(variant, inputs) : NULL;
    bool fits = given && opdi_variant_fits(variant, given, variant->ninputs, &at) &&
        !opdi_variant_tensors(opdi_self(), variant, given, all);
    for (int i = variant->nends - variant->nconstants; i < variant->nends && fits; i++) {
        if (variant->written[i]) { fits = (all[i] = opdi_choice_copy(all[i])) != NULL; }
    }
    if (fits) {
        const int64_t start = opdi_choice_clock();
        if (opdi_variant_run(variant, &at, all, results) == 0) { time = opdi_choice_clock() - start; }
    }
    opd_scope_close(&scope);
    if (!opd_ok()) { opd_error_clear(); }
    return time;
}
/* Runs the graph or program uncompiled.  Returns the number of results, or -1 and sets an error. */
OPDI_INTERNAL int opdi_compiled_uncompiled(const opd_compiled *compiled, const opd_value *inputs, int ninputs,
                                    opd_value *outputs, int cap) {
#if !defined(OPD_NO_PROGRAMS)
    if (!compiled->graph) {
        return opdi_program_run_with(compiled->program, compiled->parted, NULL, inputs, ninputs, outputs, cap);
    }
#endif
    return opd_graph_run_values(compiled->parted ? compiled->parted : compiled->graph, inputs, ninputs, outputs, cap);
}
/* Runs the graph or program uncompiled.  If `variant` is not NULL, copies the inputs that its code writes.  Returns the
   time in nanoseconds, or -1 if the run fails. */
static int64_t opdi_compiled_timed(const opd_compiled *compiled, const opdi_variant *variant, const opd_value *inputs) {
    int64_t time = -1;
    opd_scope scope = opd_scope_open();
    const int count = opdi_compiled_nresults(compiled);
    opd_value *const results = (opd_value *)opdi_scope_alloc((size_t)(count + 1) * sizeof *results);
    const opd_value *const given = !results ? NULL : variant ? opdi_choice_inputs(variant, inputs) : inputs;
    const int64_t start = opdi_choice_clock();
    if (given && opdi_compiled_uncompiled(compiled, given, compiled->ninputs, results, count) >= 0) {
        time = opdi_choice_clock() - start;
    }
    opd_scope_close(&scope);
    if (!opd_ok()) { opd_error_clear(); }
    return time;
}
static bool opdi_compiled_always(void) {
    const char *const always = getenv("OPD_COMPILED_ALWAYS");
    return always && strcmp(always, "1") == 0;
}
/* Times uncompiled runs before the code is made, so that their memory and that of the code are not needed at the same
   time.  The unit `earlier` is the recorded graph.  Returns 0 if they are timed later, or not at all. */
OPDI_INTERNAL int64_t opdi_compiled_time_first(const opd_compiled *compiled, const opdi_unit *earlier,
                                               const opd_value *inputs) {
    int64_t best = 0;
    const int64_t begin = opdi_clock();
    bool again = !opdi_compiled_always();
    for (const opdi_extern_call *called = earlier->recording.called; called; called = called->next) {
        again = again && !opdi_extern_once(called);
    }
    for (const opdi_nest *nest = earlier->recording.first; nest; nest = nest->next) {
        again = again && !nest->inner && nest->out.buffer->role == OPDI_BUFFER_TEMPORARY;
    }
    for (int i = 0; again && i < OPDI_GUARD_ROUNDS && (!i || opdi_clock() - begin < OPDI_CHOICE_MOST / 2); i++) {
        const int64_t time = opdi_compiled_timed(compiled, NULL, inputs);
        best = time > 0 && (!best || time < best) ? time : best;
        again = time >= 0;
    }
    return best;
}
/* Returns whether the code of a variant is compared with uncompiled runs.  OPD_COMPILED_ALWAYS=1 in the environment
   turns this off.  Code that writes constants is not compared, because uncompiled runs would write them, too. */
static bool opdi_variant_guards(const opdi_variant *variant) {
    bool guards = !opdi_compiled_always() && !variant->once && !variant->draws;
    for (int i = variant->nends - variant->nconstants; i < variant->nends; i++) {
        guards = guards && !variant->written[i];
    }
    return guards;
}
/* Gives the memory of packed operands back to the system, because no run will read them. */
static void opdi_variant_forget(const opdi_variant *variant, const opdi_nest_kernel *kernel) {
    char *const fixed = (char *)(((uintptr_t)variant->fixed + 63) & ~(uintptr_t)63);
    if (kernel->packed_bytes) { opdi_pages_forget(fixed + kernel->packed, (size_t)kernel->packed_bytes); }
}
/* Packs the constant operands that only the loops read.  The constants themselves, and the memory that uncompiled runs
   have left in the cache, are then not needed any more. */
static void opdi_variant_pack(const opdi_variant *variant) {
    opd_memory_trim();
    opdi_variant_drop(variant);
    for (int i = 0; i < variant->nkernels; i++) {
        const opdi_nest_kernel *const kernel = &variant->kernels[i];
        if (!kernel->packed_bytes) { continue; }
        variant->pack(&variant->model, i);
        for (int k = 0; k < 2; k++) { opdi_variant_drop_one(variant, kernel->frozen[k]); }
    }
}
static bool opdi_variant_packs(const opdi_variant *variant) {
    int64_t bytes = 0;
    for (int i = 0; i < variant->nkernels; i++) { bytes += variant->kernels[i].packed_bytes; }
    return bytes > 0;
}
/* Runs the code with the kernels (way 1) or the loops (way 0).  Returns whether it could run. */
static bool opdi_variant_try(opdi_variant *variant, const opd_value *inputs, int way) {
    memset(variant->ways, way, (size_t)variant->nkernels);
    return opdi_variant_timed(variant, inputs) >= 0;
}
/* Times the code with the kernels, and then with the loops.  In this order, constants and their packed copies are not
   in memory at the same time, if the constants are in a mapped file. */
static void opdi_variant_time_packed(opdi_variant *variant, const opd_value *inputs) {
    bool runs = true;
    for (int way = 1; way >= 0; way--) {
        const int64_t begin = opdi_clock();
        if (way == 0) { opdi_variant_pack(variant); }
        for (int i = 0; runs && i < OPDI_CHOICE_ROUNDS; i++) {
            if (i && opdi_clock() - begin > OPDI_CHOICE_MOST / 2) { break; }
            runs = opdi_variant_try(variant, inputs, way);
        }
    }
}
/* Chooses for each nest that a kernel of the library can compute whether the kernel or the loops compute it.  Runs the
   code several times with each, and keeps the way whose shortest time is shorter.  If the code cannot run twice with
   the same inputs, the kernels compute all these nests. */
OPDI_INTERNAL void opdi_variant_choose(opdi_variant *variant, const opd_value *inputs) {
    const bool once = variant->once || variant->draws, packs = opdi_variant_packs(variant);
    const int64_t begin = opdi_clock();
    if (!variant->nkernels) { return; }
    variant->model.clock = opdi_variant_clock;
    if (packs && !once) { opdi_variant_time_packed(variant, inputs); }
    for (int run = 0; run < 2 * OPDI_CHOICE_ROUNDS && !once && !packs; run++) {
        if (run >= 2 && run % 2 == 0 && opdi_clock() - begin > OPDI_CHOICE_MOST) { break; }
        if (!opdi_variant_try(variant, inputs, run % 2)) { break; }
    }
    variant->model.clock = NULL;
    for (int i = 0; i < variant->nkernels; i++) {
        const int64_t *const times = variant->times[i];
        variant->ways[i] = !times[0] || !times[1] || times[1] < times[0];
        if (variant->ways[i]) { opdi_variant_forget(variant, &variant->kernels[i]); }
    }
}
/* Returns whether uncompiled runs are faster than the code of a variant. */
static bool opdi_variant_is_slow(opdi_variant *variant, const opd_compiled *compiled, const opd_value *inputs) {
    int64_t here = INT64_MAX, plain = INT64_MAX;
    const int64_t begin = opdi_clock();
    if (!opdi_variant_guards(variant)) { return false; }
    for (int round = 0; round < OPDI_GUARD_ROUNDS; round++) {
        if (round && opdi_clock() - begin > OPDI_CHOICE_MOST) { break; }
        const int64_t time = opdi_variant_timed(variant, inputs);
        if (time < OPDI_GUARD_LEAST) { return false; }
        const int64_t other = variant->plain ? variant->plain : opdi_compiled_timed(compiled, variant, inputs);
        if (other < 0) { return false; }
        here = OPDI_MIN(here, time);
        plain = OPDI_MIN(plain, other);
    }
    return plain < here;
}
/* If uncompiled runs are faster than the code of a variant, unloads it, and lets later runs stay uncompiled. */
OPDI_INTERNAL void opdi_variant_guard(opdi_variant *variant, const opd_compiled *compiled, const opd_value *inputs) {
    if (!opdi_variant_is_slow(variant, compiled, inputs)) { return; }
    variant->why = "uncompiled runs are faster";
    opdi_variant_unload(variant);
}
/* Compares the code of a variant with uncompiled runs, if it has not yet run in this range of open sizes.  If it is
   slower, it is not used for this range any more. */
OPDI_INTERNAL void opdi_variant_compare(opdi_variant *variant, opd_compiled *compiled, const opd_value *inputs,
                                        const opdi_open_at *at) {
    unsigned char *const range = &variant->ranges[opdi_open_range(&variant->open, at)], was = OPDI_RANGE_NEW;
    if (OPDI_LOAD(range) != OPDI_RANGE_NEW || !OPDI_EXCHANGE(range, &was, (unsigned char)OPDI_RANGE_USED)) { return; }
    opdi_lock(&compiled->lock);
    if (opdi_variant_is_slow(variant, compiled, inputs)) { OPDI_STORE(range, (unsigned char)OPDI_RANGE_SLOW); }
    opdi_unlock(&compiled->lock);
}
