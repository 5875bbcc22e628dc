#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>compiled     compiled graphs: public functions
//
//  The first run with a new kind of inputs runs the graph uncompiled, then compiles it for this kind.
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN
/* Returns whether code with open sizes can have these inputs: their sizes are in the ranges, and tensors with open
   sizes are contiguous. */
static bool opdi_compiled_opens(const opd_compiled *compiled, const opd_value *inputs, int ninputs) {
    opdi_open_at at;
    if (!compiled->open.n || ninputs != compiled->ninputs ||
        !opdi_open_find_sizes(&compiled->open, inputs, ninputs, &at)) { return false; }
    for (int i = 0; i < ninputs; i++) {
        const opd_tensor *const tensor = inputs[i].tag == OPD_TAG_TENSOR ? inputs[i].u.t : NULL;
        for (int k = 0; k < (tensor ? tensor->ndim : 0); k++) {
            if (opdi_open_dim(&compiled->open, i, k) && !opd_is_contiguous(tensor)) { return false; }
        }
        for (int k = 0; k < compiled->open.n && !compiled->open.graph; k++) {
            const int dim = compiled->open.dims[k][i];
            if (dim >= 0 && (!tensor || dim >= tensor->ndim)) { return false; }
        }
    }
    return true;
}
/* Makes a variant with open sizes for these inputs and returns it.  If there is one, which is slower than uncompiled
   runs for sizes in this range, returns NULL.  If code with open sizes is impossible, returns NULL; unless memory
   ran out or a limit was reached, it also warns, and does not try open sizes again later.  The same holds, without a
   warning, if uncompiled runs with these inputs are faster: code for a single size may be faster, too. */
static opdi_variant *opdi_compiled_add_open(opd_compiled *compiled, const opd_value *inputs, int ninputs) {
    opdi_open_at at;
    if (!opdi_compiled_opens(compiled, inputs, ninputs)) { return NULL; }
    if (opd_same_bits()) { return NULL; }         /* code with open sizes calls no operators */
    for (const opdi_variant *made = compiled->variants; made; made = made->next) {
        if (made->open.n && opdi_variant_is_of(made, inputs, ninputs, &at)) { return NULL; }
    }
    opdi_variant *const variant = opdi_variant_new(inputs, ninputs);
    if (variant && variant->inputs && opdi_variant_make(variant, compiled, inputs, ninputs, true) == 0) {
        opdi_variant_choose(variant, inputs);
        opdi_variant_guard(variant, compiled, inputs);
        if (!variant->why && opdi_variant_is_of(variant, inputs, ninputs, &at)) {
            variant->ranges[opdi_open_range(&variant->open, &at)] = OPDI_RANGE_USED;
            return variant;
        }
        compiled->open.n = 0;
    } else if (!opdi_error_passes()) {
        opd_warn("%s: '%s' cannot have open sizes, so it is compiled for each size: %s", compiled->what, compiled->name,
                 opd_error_message());
        compiled->open.n = 0;
    }
    opd_error_clear();
    opdi_variant_free(variant);
    return NULL;
}
/* Adds a variant for the kind of these inputs, which an uncompiled run has shown to be valid.  If the kind cannot be
   compiled, adds a variant without code, so that later runs with such inputs stay uncompiled.  The caller holds the
   lock. */
static void opdi_compiled_add(opd_compiled *compiled, const opd_value *inputs, int ninputs) {
    opdi_variant *variant = opdi_compiled_add_open(compiled, inputs, ninputs);
    const bool made = variant != NULL;
    char why[700];
    if (compiled->job) { return; }                /* the C compiler works in the background: a later run goes on */
    variant = made ? variant : opdi_variant_new(inputs, ninputs);
    if (!variant) {
        opd_error_clear();
        return;
    }
    if (!made && (!variant->inputs || opdi_variant_make(variant, compiled, inputs, ninputs, false))) {
        const bool passes = opdi_error_passes();
        (void)snprintf(why, sizeof why, "%s", opd_error_message());
        opd_error_clear();
        variant->why = passes || !variant->inputs ? NULL : opdi_arena_copy(&variant->memory, why, strlen(why));
        if (!variant->why || opdi_variant_ports(variant, inputs)) {      /* such as without memory: a later run tries to
                                                                            compile again */
            opd_error_clear();
            opdi_variant_free(variant);
            return;
        }
        if (!compiled->said) { opd_warn("%s: '%s' runs uncompiled: %s", compiled->what, compiled->name, why); }
        compiled->said = true;
    }
    if (!variant->why && !made) {
        opdi_variant_choose(variant, inputs);
        opdi_variant_guard(variant, compiled, inputs);
    }
    variant->next = compiled->variants;
    compiled->count++;
    OPDI_PUBLISH(&compiled->variants, variant);
}
/* Runs the graph or program uncompiled.  Then compiles it for this kind of inputs, unless `why` is a reason not to, or
   another uncompiled run is in progress.  Returns the number of results, or -1 and sets an error. */
static int opdi_compiled_plain(opd_compiled *compiled, const opd_value *inputs, int ninputs, opd_value *outputs,
                               int cap, const char *why) {
    opdi_lock(&compiled->lock);
    compiled->plain++;
    opdi_unlock(&compiled->lock);
    const int rc = opdi_compiled_uncompiled(compiled, inputs, ninputs, outputs, cap);
    opdi_lock(&compiled->lock);
    if (--compiled->plain == 0 && rc >= 0 && !why && compiled->count < compiled->kinds) {
        const opdi_variant *variant = compiled->variants;
        opdi_open_at at;
        while (variant && !opdi_variant_fits(variant, inputs, ninputs, &at)) { variant = variant->next; }
        if (!variant && !opdi_compile_job_end(compiled, false)) { opdi_compiled_add(compiled, inputs, ninputs); }
    }
    OPDI_STORE(&compiled->reason, why ? why : compiled->job ? "the C compiler is working in the background"
               : compiled->count < compiled->kinds ? "inputs of this kind are new"
               : "there are more kinds of inputs than the limit for compiling (opd_compile_options.kinds)");
    opdi_unlock(&compiled->lock);
    return rc;
}
/* Stores the options that tell which dims have open sizes.  Returns 0, or -1 and sets an error. */
static int opdi_compiled_open(opd_compiled *compiled, const opd_compile_options *options) {
    const int n = compiled->ninputs;
    if (!options || !options->open) { return 0; }
    if (!(compiled->dims = (int *)opdi_alloc((size_t)(2 * n + 1) * sizeof *compiled->dims))) { return -1; }
    memcpy(compiled->dims, options->open, (size_t)n * sizeof *compiled->dims);
    if (options->open_2) { memcpy(compiled->dims + n, options->open_2, (size_t)n * sizeof *compiled->dims); }
    (void)opdi_open_of_options(&compiled->open, compiled->dims, options->open_2 ? compiled->dims + n : NULL);
    compiled->open.least[0] = options->least;
    compiled->open.most[0] = options->most;
    compiled->open.least[1] = options->least_2;
    compiled->open.most[1] = options->most_2;
    return 0;
}
static opd_compiled *opdi_compiled_new(const char *what, const opd_compile_options *options, int ninputs) {
    opd_compiled *const compiled = (opd_compiled *)opdi_alloc(sizeof *compiled);
    static const opdi_mutex fresh = OPDI_MUTEX_INIT;
    const char *const flags = options ? options->flags : NULL;
    opdi_unit unit;
    if (!compiled) { return NULL; }
    memset(compiled, 0, sizeof *compiled);
    compiled->refs = 1;
    compiled->lock = fresh;
    compiled->what = what;
    compiled->frozen = options && options->frozen;
    compiled->background = options && options->background;
    compiled->kinds = options && options->kinds > 0 ? options->kinds : 8;
    compiled->reason = "it has not run";
    int rc = opdi_unit_begin(&unit, what, options ? options->name : NULL);
    if (rc == 0) { (void)snprintf(compiled->name, sizeof compiled->name, "%s", unit.name); }
    compiled->ninputs = ninputs;
    rc = rc || opdi_compiled_open(compiled, options) ? -1 : 0;
    if (rc == 0 && flags) {
        compiled->flags = (char *)opdi_alloc(strlen(flags) + 1);
        if (compiled->flags) { memcpy(compiled->flags, flags, strlen(flags) + 1); } else { rc = -1; }
    }
    if (rc == 0) { return compiled; }
    opd_compiled_free(compiled);
    return NULL;
}
/* Lets a compiler compute the parts of the graph that it supports, in all later runs.  Returns their number, or -1 and
   sets an error. */
static int opdi_compiled_part(opd_compiled *compiled, const opd_part_compiler *parter) {
    const opd_graph *graph = compiled->graph;
#if !defined(OPD_NO_PROGRAMS)
    if (!graph) { graph = compiled->program->graph; }
#endif
    opd_graph *const copy = opd_graph_copy(graph);
    const int count = copy ? opd_graph_delegate(copy, parter) : -1;
    if (count < 0) {
        opd_graph_free(copy);
        return -1;
    }
    compiled->parter = parter;
    OPDI_PUBLISH(&compiled->parted, copy);
    return count;
}
int opd_compiled_delegate(opd_compiled *compiled, const opd_part_compiler *compiler) {
    if (!opd_ok()) { return -1; }
    if (!compiled || !compiler) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_compiled_delegate: the %s is NULL", compiled ? "compiler"
                        : "compiled graph");
    }
    opdi_lock(&compiled->lock);
    const int count = !compiled->parter && !compiled->variants && !compiled->plain
        ? opdi_compiled_part(compiled, compiler)
        : opd_fail(OPD_ERROR_ARGUMENT, "opd_compiled_delegate: the graph has run, or has a compiler already");
    opdi_unlock(&compiled->lock);
    return count;
}
/* Returns a number that grows when a tensor of the program's module or the program's graph is replaced. */
static uint32_t opdi_compiled_changes(const opd_compiled *compiled) {
#if !defined(OPD_NO_PROGRAMS)
    if (compiled->program) { return compiled->program->changes + compiled->program->module->changes; }
#endif
    (void)compiled;
    return 0;
}
/* Returns a number that tells programs apart whose tensors differ in dtypes, sizes, strides, devices or in what is
   computed lazily, or of which other items are the same tensor or share memory; 0 if memory runs out. */
static uint64_t opdi_compiled_form(const opd_compiled *compiled) {
    uint64_t form = 1;
#if !defined(OPD_NO_PROGRAMS) && defined(OPDI_COMPILES)
    const int64_t count = compiled->program ? opd_module_count(compiled->program->module) : 0;
    opdi_pointer_set tensors;
    memset(&tensors, 0, sizeof tensors);
    for (int64_t i = 0; i < count && form; i++) {
        const opd_tensor *const tensor = opd_module_at(compiled->program->module, i);
        int64_t numbers[2];
        numbers[0] = opdi_pointer_set_add(&tensors, (uintptr_t)tensor);
        numbers[1] = opdi_pointer_set_add(&tensors, (uintptr_t)tensor->storage);
        const uint64_t about[4] = {(uint64_t)tensor->dtype, (uint64_t)tensor->ndim, (uint64_t)tensor->backend,
                                   tensor->functionality & OPDI_LAZY_KEYS};
        form = opdi_hash_bytes(form, about, sizeof about);
        form = opdi_hash_bytes(form, tensor->dims, 2 * (size_t)tensor->ndim * sizeof *tensor->dims);
        if (numbers[0] < 0 || numbers[1] < 0) { form = 0; }
        else { form = opdi_hash_bytes(form, numbers, sizeof numbers); }
    }
    opdi_pointer_set_free(&tensors);
    if (!form) { opd_error_clear(); }
#else
    (void)compiled;
#endif
    return form;
}
/* Notes of which program the next variants are made. */
static void opdi_compiled_note(opd_compiled *compiled) {
#if !defined(OPD_NO_PROGRAMS)
    if (compiled->program) { compiled->graphs = compiled->program->changes; }
#endif
    compiled->form = opdi_compiled_form(compiled);
}
/* Gives a variant the tensors that the program has now, if `fits` is true: the program has the same graph and form.
   Otherwise, or if a frozen constant was replaced, unloads the code. */
static void opdi_compiled_rebind(const opd_compiled *compiled, opdi_variant *variant, bool fits) {
#if !defined(OPD_NO_PROGRAMS)
    const opd_module *const module = compiled->program->module;
    for (int i = 0; i < variant->nfrozen && fits && variant->places; i++) {
        const int32_t place = variant->frozen[i] ? variant->places[variant->nconstants + i] : -1;
        fits = place == -1 || (place >= 0 && opd_module_at(module, place) == variant->frozen[i] &&
                               variant->frozen[i]->storage == variant->storages[i]);
    }
    for (int i = 0; i < variant->nconstants && fits && variant->places; i++) { fits = variant->places[i] >= -1; }
    for (int i = 0; i < variant->nconstants && fits && variant->places; i++) {
        if (variant->places[i] >= 0) { variant->constants[i] = opd_module_at(module, variant->places[i]); }
    }
    for (int i = 0; i < variant->ncalled && fits && variant->places; i++) {
        for (int k = 0; variant->called[i] && k < variant->called[i]->nin; k++) {
            opdi_extern_tensor *const slot = &variant->called[i]->in[k];
            if (slot->item >= 0) { slot->held = opd_module_at(module, slot->item); }
            fits = fits && slot->item >= -1;
        }
    }
#else
    (void)compiled;
#endif
    if (fits) { return; }
    opdi_variant_unload(variant);
    variant->gone = true;
}
/* Frees the variants that are gone, if no other run may be searching in the list. */
static void opdi_compiled_forget(opd_compiled *compiled) {
    opdi_variant **at = &compiled->variants;
    if (OPDI_LOAD(&compiled->refs) > 2) { return; }
    while (*at) {
        opdi_variant *const variant = *at;
        if (!variant->gone) {
            at = &variant->next;
            continue;
        }
        *at = variant->next;
        opdi_variant_free(variant);
    }
}
/* Adapts the variants to a program of which tensors or the graph were replaced.  The compiler of parts gets a new
   graph.  Returns 0, or -1 and sets an error. */
static int opdi_compiled_renew(opd_compiled *compiled) {
    int rc = 0;
    opdi_lock(&compiled->lock);
    const uint32_t changes = opdi_compiled_changes(compiled);
    if (compiled->changes != changes) {
        const uint32_t graphs = compiled->graphs;
        const uint64_t form = compiled->form;
        opdi_compiled_note(compiled);
        compiled->count = 0;
        for (opdi_variant *variant = compiled->variants; variant; variant = variant->next) {
            if (variant->gone) { continue; }
            opdi_compiled_rebind(compiled, variant, form && form == compiled->form && graphs == compiled->graphs);
            compiled->count += !variant->gone;
        }
        opdi_compiled_forget(compiled);
        if (compiled->parted && graphs != compiled->graphs) {
            opd_graph_free(compiled->parted);
            compiled->parted = NULL;
            rc = opdi_compiled_part(compiled, compiled->parter);
        }
        OPDI_PUBLISH(&compiled->changes, changes);
    }
    opdi_unlock(&compiled->lock);
    return rc < 0 ? -1 : 0;
}
/* Returns the compiler of the device on which an input is, or NULL if the device has none. */
static const opd_part_compiler *opdi_compiled_parter(const opd_value *inputs, int ninputs) {
    for (int i = 0; i < ninputs && inputs; i++) {
        const opd_tensor *const tensor = inputs[i].tag == OPD_TAG_TENSOR ? inputs[i].u.t : NULL;
        const opdi_backend *const backend =
            tensor && tensor->backend != OPD_CPU ? opdi_backend_of(tensor->backend) : NULL;
        if (backend) { return backend->desc.parts; }
    }
    return NULL;
}
opd_compiled *opd_graph_compile(const opd_graph *graph, const opd_compile_options *options) {
    if (!opd_ok() || opd_code_forbidden("opd_graph_compile")) { return NULL; }
    if (!graph) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_compile: the graph is NULL");
        return NULL;
    }
    opd_compiled *const compiled = opdi_compiled_new("opd_graph_compile", options, graph->ninputs);
    if (!compiled) { return NULL; }
    compiled->graph = graph;
    if (!compiled->open.n && (graph->program || !opdi_open_of_graph(graph, &compiled->open))) { compiled->open.n = 0; }
    return compiled;
}
opd_compiled *opd_program_compile(const opd_program *program, const opd_compile_options *options) {
#if defined(OPD_NO_PROGRAMS)
    (void)program;
    (void)options;
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_program_compile is left out: OPD_NO_PROGRAMS was defined");
    return NULL;
#else
    if (!opd_ok() || opd_code_forbidden("opd_program_compile")) { return NULL; }
    if (!program) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_program_compile: the program is NULL");
        return NULL;
    }
    opd_compiled *const compiled = opdi_compiled_new("opd_program_compile", options, program->ninputs);
    if (compiled) {
        compiled->program = program;
        compiled->changes = opdi_compiled_changes(compiled);
        opdi_compiled_note(compiled);
    }
    return compiled;
#endif
}
void opd_compiled_free(opd_compiled *compiled) {
    if (!compiled || opdi_ref_down(&compiled->refs)) { return; }
    (void)opdi_compile_job_end(compiled, true);
    for (opdi_variant *variant = compiled->variants, *next; variant; variant = next) {
        next = variant->next;
        opdi_variant_free(variant);
    }
    opd_graph_free(compiled->parted);
    if (compiled->flags) { opdi_free(compiled->flags, strlen(compiled->flags) + 1); }
    if (compiled->dims) { opdi_free(compiled->dims, (size_t)(2 * compiled->ninputs + 1) * sizeof *compiled->dims); }
    opdi_free(compiled, sizeof *compiled);
}
const char *opd_compiled_reason(const opd_compiled *compiled) {
    return compiled ? (const char *)OPDI_LOAD(&compiled->reason) : "the compiled graph is NULL";
}
OPDI_COLD_END

/* Returns a reason why these inputs cannot be passed to any compiled code, or NULL if they can. */
static const char *opdi_compiled_inputs(const opdi_thread *thread, const opd_value *inputs, int ninputs) {
    if (ninputs > 0 && !inputs) { return "the pointer to the inputs is NULL"; }
    for (int i = 0; i < ninputs; i++) {
        const opd_value *const value = &inputs[i];
        if (value->tag == OPD_TAG_TENSOR) {
            const char *const why = value->u.t ? opdi_compiled_tensor(thread, value->u.t, false, false)
                : "an input is NULL";
            if (why) { return why; }
        } else if (value->tag != OPD_TAG_INT && value->tag != OPD_TAG_FLOAT && value->tag != OPD_TAG_BOOL &&
                   value->tag != OPD_TAG_NONE && value->tag != OPD_TAG_DEFAULT) {
            return "an input is neither a tensor nor a number";
        }
    }
    return NULL;
}
/* Returns a reason why the tensors of a program's module cannot be passed to compiled code, or NULL if they can. */
static const char *opdi_compiled_module(const opdi_thread *thread, const opd_compiled *compiled) {
    const char *why = NULL;
#if !defined(OPD_NO_PROGRAMS)
    const int64_t count = compiled->program ? opd_module_count(compiled->program->module) : 0;
    for (int64_t i = 0; i < count && !why; i++) {
        why = opdi_compiled_tensor(thread, opd_module_at(compiled->program->module, i), false, false);
    }
#else
    (void)thread;
    (void)compiled;
#endif
    return why;
}
/* Lets the compiler of a device compute parts, if it was not asked before.  If it fails, warns, and the graph runs
   uncompiled.  Returns whether parts are computed by a compiler. */
static bool opdi_compiled_by_device(opd_compiled *compiled, const opd_part_compiler *parter) {
    opdi_lock(&compiled->lock);
    if (!compiled->parter && !compiled->plain && opdi_compiled_part(compiled, parter) < 0) {
        compiled->parter = parter;
        opd_warn("%s: '%s' runs uncompiled: %s", compiled->what, compiled->name, opd_error_message());
        opd_error_clear();
    }
    opdi_unlock(&compiled->lock);
    return compiled->parted != NULL;
}
static int opdi_compiled_run(opd_compiled *compiled, const opd_value *inputs, int ninputs, opd_value *outputs,
                             int cap) {
    opdi_thread *const thread = opdi_self();
    opdi_variant *variant = NULL;
    opdi_open_at at;
    const opd_part_compiler *const parter = opdi_compiled_parter(inputs, ninputs);
    if (OPDI_ACQUIRE(&compiled->changes) != opdi_compiled_changes(compiled) && opdi_compiled_renew(compiled)) {
        return -1;
    }
    if (OPDI_ACQUIRE(&compiled->parted) || (parter && opdi_compiled_by_device(compiled, parter))) {
        const int rc = opdi_compiled_uncompiled(compiled, inputs, ninputs, outputs, cap);
        OPDI_STORE(&compiled->reason, NULL);
        return rc;
    }
    const char *why = opdi_compiled_modes(thread);
    if (!why) { why = opdi_compiled_inputs(thread, inputs, ninputs); }
    if (!why) {
        variant = OPDI_ACQUIRE(&compiled->variants);
        while (variant && !opdi_variant_fits(variant, inputs, ninputs, &at)) { variant = variant->next; }
        why = variant ? variant->why : NULL;
    }
    if (!variant && !why) { why = opdi_compiled_module(thread, compiled); }
    if (variant && !why && variant->asks && !thread->state.no_grad) { why = "the result depends on the grad mode"; }
    if (variant && !why && (cap < variant->nresults || !outputs)) { why = "the array for the outputs is too small"; }
    if (!variant || why) { return opdi_compiled_plain(compiled, inputs, ninputs, outputs, cap, why); }
    opd_scope scope = opd_scope_open();
    opd_span *const span = opd_span_open(compiled->name);
    opd_tensor **const all = (opd_tensor **)opdi_scope_alloc((size_t)(variant->nends + 1) * sizeof *all);
    why = all ? opdi_variant_tensors(thread, variant, inputs, all) : NULL;
    const int rc = !all ? -1 : why ? 1 : opdi_variant_run(variant, &at, all, outputs);
    bool held = rc == 0;
    for (int i = 0; i < variant->nresults && held; i++) { held = opdi_value_hold(&outputs[i]) == 0; }
    opd_span_close(span);
    opd_scope_close(&scope);
    if (rc > 0) {
        return opdi_compiled_plain(compiled, inputs, ninputs, outputs, cap, why ? why : "compiled code found an error");
    }
    for (int i = 0; i < variant->nresults && held; i++) { outputs[i] = opdi_value_own(outputs[i]); }
    if (held && variant->open.n) { opdi_variant_compare(variant, compiled, inputs, &at); }
    OPDI_STORE(&compiled->reason, NULL);
    return held && opd_ok() ? variant->nresults : -1;
}
/* If all fixed inputs of a program are left out (see opd_program_run), writes all inputs to `all`, in which they have
   OPD_DEFAULT.  Returns their number, or 0 if none is left out, or there are more than OPD_MAX_ARGS inputs. */
static int opdi_compiled_whole(const opd_compiled *compiled, const opd_value *inputs, int ninputs, opd_value *all) {
#if !defined(OPD_NO_PROGRAMS)
    const opd_program *const program = compiled->program;
    int k = 0;
    if (!program || program->ninputs > OPD_MAX_ARGS || ninputs < 0 || ninputs >= program->ninputs ||
        (ninputs > 0 && !inputs)) { return 0; }
    for (int i = 0; i < program->ninputs; i++) {
        const bool fixed = program->inputs[i].constant;
        if (!fixed && k == ninputs) { return 0; }
        all[i] = fixed ? opd_value_default() : inputs[k];
        k += !fixed;
    }
    return k == ninputs ? program->ninputs : 0;
#else
    (void)compiled;
    (void)inputs;
    (void)ninputs;
    (void)all;
    return 0;
#endif
}
int opd_compiled_run(opd_compiled *compiled, const opd_value *inputs, int ninputs, opd_value *outputs, int cap) {
    if (!opd_ok() || opdi_run_ends(opdi_self())) { return -1; }
    if (!compiled) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_compiled_run: the compiled graph is NULL"); }
    opd_value all[OPD_MAX_ARGS];
    const int count = opdi_compiled_whole(compiled, inputs, ninputs, all);
    opdi_ref_up(&compiled->refs);
    const int rc = opdi_compiled_run(compiled, count ? all : inputs, count ? count : ninputs, outputs, cap);
    opd_compiled_free(compiled);
    return rc;
}
int opd_compiled_function(void *compiled, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    const opd_compiled *const called = (const opd_compiled *)compiled;
    const int total = !called ? 0 : called->graph ? called->graph->noutputs : opd_program_noutputs(called->program);
    opd_value values[OPD_MAX_ARGS], results[OPD_TRANSFORM_OUTPUTS];
    if (ninputs < 0 || ninputs > OPD_MAX_ARGS || (ninputs && !inputs) || !outputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_compiled_function: there must be at most %d inputs, and the arrays "
                        "must not be NULL", OPD_MAX_ARGS);
    }
    if (opdi_function_outputs("opd_compiled_function", total, "opd_compiled_run") < 0) { return -1; }
    for (int i = 0; i < ninputs; i++) { values[i] = opd_value_tensor(inputs[i]); }
    const int count = opd_compiled_run((opd_compiled *)compiled, values, ninputs, results, OPD_TRANSFORM_OUTPUTS);
    if (called->program) {                        /* as opd_program_function: only the tensors */
        int tensors = 0;
        for (int i = 0; i < count; i++) {
            if (results[i].tag == OPD_TAG_TENSOR) { outputs[tensors++] = results[i].u.t; }
        }
        return count < 0 ? -1 : tensors;
    }
    for (int i = 0; i < count; i++) {
        outputs[i] = results[i].tag == OPD_TAG_TENSOR ? results[i].u.t : NULL;
        if (!outputs[i] && results[i].tag != OPD_TAG_NONE) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_compiled_function: output %d is not a tensor: use "
                            "opd_compiled_run", i);
        }
    }
    return count;
}
