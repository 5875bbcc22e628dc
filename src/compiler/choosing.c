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
/* Gives the memory of packed operands back to the system, because no run will read them. */
static void opdi_variant_forget(const opdi_variant *variant, const opdi_nest_kernel *kernel) {
    char *const fixed = (char *)(((uintptr_t)variant->fixed + 63) & ~(uintptr_t)63);
    if (kernel->packed_bytes) { opdi_pages_forget(fixed + kernel->packed, (size_t)kernel->packed_bytes); }
}
/* Chooses for each nest that a kernel of the library can compute whether the kernel or the loops compute it.  Runs the
   code several times with each, and keeps the way whose shortest time is shorter.  If the code cannot run twice with
   the same inputs, the kernels compute all these nests. */
OPDI_INTERNAL void opdi_variant_choose(opdi_variant *variant, const opd_value *inputs) {
    const bool once = variant->once || variant->draws;
    const int64_t begin = opdi_clock();
    if (!variant->nkernels) { return; }
    variant->model.clock = opdi_variant_clock;
    for (int run = 0; run < 2 * OPDI_CHOICE_ROUNDS && !once; run++) {
        if (run >= 2 && run % 2 == 0 && opdi_clock() - begin > OPDI_CHOICE_MOST) { break; }
        memset(variant->ways, run % 2, (size_t)variant->nkernels);
        if (opdi_variant_timed(variant, inputs) < 0) { break; }
    }
    variant->model.clock = NULL;
    for (int i = 0; i < variant->nkernels; i++) {
        const int64_t *const times = variant->times[i];
        variant->ways[i] = !times[0] || !times[1] || times[1] < times[0];
        if (variant->ways[i]) { opdi_variant_forget(variant, &variant->kernels[i]); }
    }
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
/* Runs the graph or program uncompiled, on copies of the inputs that it writes.  Returns the time in nanoseconds, or -1
   if the run fails. */
static int64_t opdi_compiled_timed(const opd_compiled *compiled, const opdi_variant *variant,
                                   const opd_value *inputs) {
    int64_t time = -1;
    opd_scope scope = opd_scope_open();
    opd_value *const results = (opd_value *)opdi_scope_alloc((size_t)(variant->nresults + 1) * sizeof *results);
    const opd_value *const given = results ? opdi_choice_inputs(variant, inputs) : NULL;
    const int64_t start = opdi_choice_clock();
    if (given && opdi_compiled_uncompiled(compiled, given, variant->ninputs, results, variant->nresults) >= 0) {
        time = opdi_choice_clock() - start;
    }
    opd_scope_close(&scope);
    if (!opd_ok()) { opd_error_clear(); }
    return time;
}
/* Returns whether uncompiled runs are faster than the code of a variant.  OPD_COMPILED_ALWAYS=1 in the environment
   turns this off.  Code that writes constants is not compared, because uncompiled runs would write them, too. */
static bool opdi_variant_is_slow(opdi_variant *variant, const opd_compiled *compiled, const opd_value *inputs) {
    int64_t here = INT64_MAX, plain = INT64_MAX;
    const char *const always = getenv("OPD_COMPILED_ALWAYS");
    const int64_t begin = opdi_clock();
    if (always && strcmp(always, "1") == 0) { return false; }
    if (variant->once || variant->draws) { return false; }
    for (int i = variant->nends - variant->nconstants; i < variant->nends; i++) {
        if (variant->written[i]) { return false; }
    }
    for (int round = 0; round < OPDI_GUARD_ROUNDS; round++) {
        if (round && opdi_clock() - begin > OPDI_CHOICE_MOST) { break; }
        const int64_t time = opdi_variant_timed(variant, inputs);
        if (time < OPDI_GUARD_LEAST) { return false; }
        const int64_t other = opdi_compiled_timed(compiled, variant, inputs);
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
