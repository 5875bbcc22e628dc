#include "compiler.h"

//== compiling a graph for one kind of inputs ==========================================================================
//
//  Records a graph, writes the C code, compiles and loads it, and keeps in an opdi_variant what its runs need.

/* Frees a variant and unloads its code. */
OPDI_INTERNAL void opdi_variant_free(opdi_variant *variant) {
    if (!variant) { return; }
    opdi_variant_unload(variant);
    opdi_arena_free(&variant->memory);
    opdi_free(variant, sizeof *variant);
}
static void *opdi_variant_alloc(opdi_variant *variant, int count, size_t size) {
    void *const memory = opdi_arena_alloc(&variant->memory, (size_t)(count + 1) * size);
    if (memory) { memset(memory, 0, (size_t)(count + 1) * size); }
    return memory;
}
/* Copies the kernels of a recording to a variant.  Returns 0, or -1 and sets an error. */
static int opdi_variant_kernels(opdi_variant *variant, const opdi_recording *recording) {
    const int count = variant->nkernels = recording->nkernels;
    variant->kernels = (opdi_nest_kernel *)opdi_variant_alloc(variant, count, sizeof *variant->kernels);
    variant->ways = (unsigned char *)opdi_variant_alloc(variant, count, 1);
    variant->times = (int64_t (*)[2])opdi_variant_alloc(variant, count, sizeof *variant->times);
    if (!variant->kernels || !variant->ways || !variant->times) { return -1; }
    for (const opdi_nest_kernel *kernel = recording->kernels; kernel; kernel = kernel->next) {
        opdi_nest_kernel *const kept = &variant->kernels[kernel->id];
        *kept = *kernel;
        for (int i = 0; i < 2; i++) {
            const opdi_buffer *const buffer = kernel->operands[i]->buffer;
            kept->frozen[i] = buffer->role == OPDI_BUFFER_CONSTANT && buffer->tensor && variant->nfrozen
                ? (int32_t)buffer->index : -1;
        }
    }
    variant->model.ways = variant->ways;
    return 0;
}
/* Copies the properties of a unit that runs need to a variant.  Returns 0, or -1 and sets an error. */
static int opdi_variant_keep(opdi_variant *variant, const opdi_unit *unit) {
    const opdi_recording *const recording = &unit->recording;
    variant->nends = unit->ninputs;
    variant->noutputs = unit->noutputs;
    variant->nresults = unit->nresults;
    variant->nconstants = unit->nconstants;
    variant->whole = unit->whole;
    variant->asks = unit->asks;
    variant->ends = (opdi_unit_port *)opdi_variant_alloc(variant, unit->ninputs, sizeof *variant->ends);
    variant->outputs = (opdi_unit_port *)opdi_variant_alloc(variant, unit->noutputs, sizeof *variant->outputs);
    variant->written = (bool *)opdi_variant_alloc(variant, unit->ninputs, sizeof *variant->written);
    variant->from = (int32_t *)opdi_variant_alloc(variant, unit->nresults, sizeof *variant->from);
    variant->numbers = (opd_value *)opdi_variant_alloc(variant, unit->nresults, sizeof *variant->numbers);
    variant->views = (opdi_unit_view *)opdi_variant_alloc(variant, unit->nresults, sizeof *variant->views);
    variant->constants = (opd_tensor **)opdi_variant_alloc(variant, unit->nconstants, sizeof *variant->constants);
    variant->frozen = (opd_tensor **)opdi_variant_alloc(variant, (int)unit->weights, sizeof *variant->frozen);
    variant->kept = (opdi_unit_port *)opdi_variant_alloc(variant, (int)unit->weights, sizeof *variant->kept);
    variant->storages = (opdi_storage **)opdi_variant_alloc(variant, (int)unit->weights, sizeof *variant->storages);
    variant->versions = (uint32_t *)opdi_variant_alloc(variant, (int)unit->weights, sizeof *variant->versions);
    variant->table = (const void **)opdi_variant_alloc(variant, (int)unit->weights, sizeof *variant->table);
    if (!opd_ok()) { return -1; }
    variant->nfrozen = (int)unit->weights;
    for (int i = 0; i < unit->ninputs; i++) {
        variant->ends[i] = unit->inputs[i];
        variant->ends[i].buffer = NULL;
        variant->written[i] = unit->inputs[i].buffer->writes != 0;
        variant->writes = variant->writes || variant->written[i];
    }
    for (int i = 0; i < unit->noutputs; i++) { variant->outputs[i] = unit->outputs[i]; }
    for (int i = 0; i < unit->nresults; i++) {
        variant->from[i] = unit->from[i];
        variant->numbers[i] = unit->numbers[i];
        variant->views[i] = unit->views[i];
    }
    for (int i = 0; i < unit->nconstants; i++) { variant->constants[i] = (opd_tensor *)(uintptr_t)unit->constants[i]; }
    for (int i = 0; i < recording->nbuffers; i++) {
        const opdi_buffer *const buffer = recording->buffers[i];
        if (buffer->role != OPDI_BUFFER_CONSTANT || (buffer->first < 0 && !buffer->folded)) { continue; }
        opd_tensor *const tensor = (opd_tensor *)(uintptr_t)buffer->tensor;
        if (buffer->writes) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: the graph writes a frozen constant: compile it without `frozen`",
                            unit->what);
        }
        if (!tensor) {                            /* a constant that was computed while the graph was recorded */
            void *const copy = opdi_arena_alloc(&variant->memory, buffer->bytes);
            if (!copy) { return -1; }
            memcpy(copy, buffer->data, buffer->bytes);
            variant->table[buffer->index] = copy;
            continue;
        }
        variant->frozen[buffer->index] = tensor;
        variant->storages[buffer->index] = tensor->storage;
        opdi_ref_up(&tensor->storage->refs);
        opdi_port_keep(&variant->kept[buffer->index], tensor);
        variant->versions[buffer->index] = OPDI_LOAD(&tensor->storage->version);
        variant->table[buffer->index] = tensor->data;
    }
    variant->arena_bytes = unit->arena;
    variant->fixed_bytes = unit->fixed;
    variant->called = (opdi_extern_call **)opdi_variant_alloc(variant, recording->ncalled, sizeof *variant->called);
    variant->ncalled = variant->called ? recording->ncalled : 0;
    for (const opdi_extern_call *called = recording->called; called && variant->called; called = called->next) {
        variant->draws = variant->draws || called->draws;
        variant->once = variant->once || opdi_extern_once(called);
        if (!(variant->called[called->id] = opdi_extern_keep(&variant->memory, called))) { return -1; }
    }
    variant->model.call = opdi_variant_extern;
    variant->model.kernel = opdi_variant_kernel;
    variant->model.context = variant;
    return variant->called ? opdi_variant_kernels(variant, recording) : -1;
}
/* Returns the number of `tensor` in the module of the program; -1 if it is not in a module, or -2 if it only shares
   memory with a tensor of the module. */
static int32_t opdi_compiled_item(const opd_compiled *compiled, const opd_tensor *tensor) {
    int32_t item = -1;
#if !defined(OPD_NO_PROGRAMS)
    const int64_t count = compiled->program ? opd_module_count(compiled->program->module) : 0;
    for (int32_t i = 0; i < count && tensor; i++) {
        const opd_tensor *const other = opd_module_at(compiled->program->module, i);
        if (other == tensor) { return i; }
        if (other->storage && other->storage == tensor->storage) { item = -2; }
    }
#else
    (void)compiled;
    (void)tensor;
#endif
    return item;
}
/* Notes which tensors of the module the constants of a variant are.  Returns 0, or -1 and sets an error. */
static int opdi_variant_places(opdi_variant *variant, const opd_compiled *compiled) {
    const int count = variant->nconstants + variant->nfrozen;
    variant->places = (int32_t *)opdi_variant_alloc(variant, count, sizeof *variant->places);
    if (!variant->places) { return -1; }
    for (int i = 0; i < count; i++) {
        const int at = i - variant->nconstants;
        variant->places[i] = opdi_compiled_item(compiled, at < 0 ? variant->constants[i] : variant->frozen[at]);
    }
    for (int i = 0; i < variant->ncalled; i++) {
        opdi_extern_call *const called = variant->called[i];
        for (int k = 0; called && k < called->nin; k++) {
            opdi_extern_tensor *const slot = &called->in[k];
            slot->item = slot->place == OPDI_EXTERN_HELD ? opdi_compiled_item(compiled, slot->held) : -1;
        }
    }
    return 0;
}
#if defined(OPDI_COMPILES)
/* Compiles C texts with these flags, and writes the path of the result to `path`.  Returns 0, or -1 and sets an error;
   sets *wrong to whether the compiler gives wrong numbers with these flags. */
static int opdi_variant_compile(const opd_compiled *compiled, const opdi_string *source, const char *flags, char *path,
                                bool *wrong) {
    opdi_string quiet = {NULL, 0, 0, false};
    opdi_build_also check;
    *wrong = false;
    const bool checks = opdi_flags_check_new(flags, &check, &quiet);
    const int rc = opdi_build_texts(compiled->what, compiled->name, source, flags, path, checks ? &check : NULL);
    opdi_string_free(&quiet);
    if (rc) { return -1; }
    const char *const lacks = opd_plugin_lacks(path);
    if (lacks) {                                  /* the processor is emulated, or the flags are for another one */
        return opd_fail(OPD_ERROR_REGISTER, "%s: the flags '%s' give code for %s, which this processor lacks",
                        compiled->what, flags, lacks);
    }
    return opdi_flags_check(compiled->what, flags, wrong);
}
/* Compiles C texts with these flags and those that the mode of same bits needs.  Returns 0, or -1 and sets an error. */
static int opdi_variant_compile_same(const opd_compiled *compiled, const opdi_string *source, const char *flags,
                                     const char *more, char *path, bool *wrong) {
    opdi_string all = {NULL, 0, 0, false};
    *wrong = false;
    opdi_string_add(&all, flags);
    opdi_string_add(&all, more);
    if (opd_same_bits()) {                        /* also if the flags of the caller want other numbers */
        opdi_string_add(&all, " -fno-fast-math -fno-unsafe-math-optimizations -fno-associative-math "
                        "-fno-reciprocal-math -fno-finite-math-only -fsigned-zeros -ffp-contract=off");
    }
    const int rc = all.failed ? -1 : opdi_variant_compile(compiled, source, all.data, path, wrong);
    opdi_string_free(&all);
    return rc;
}
/* Compiles C texts with the flags of the caller, or with those for the fastest code.  If the compiler gives
   wrong numbers with them, its vectoriser is turned off.  Returns 0, or -1 and sets an error. */
static int opdi_variant_build(const opd_compiled *compiled, const opdi_string *source, char *path) {
    const char *const given = compiled->flags ? compiled->flags
        : "-O3 -march=native -fno-math-errno -fno-trapping-math -w";
    bool wrong;
    int rc = opdi_variant_compile_same(compiled, source, given, "", path, &wrong);
    if (wrong) {
        opd_warn("%s; '%s' is compiled with -fno-tree-vectorize", opd_error_message(), compiled->name);
        opd_error_clear();
        rc = opdi_variant_compile_same(compiled, source, given, " -fno-tree-vectorize", path, &wrong);
    }
    if (rc == 0 || compiled->flags) { return rc; }
    opd_error_clear();                            /* other flags: the C compiler may not know the first flags */
    return opdi_variant_compile_same(compiled, source, "-O2", "", path, &wrong);
}
#endif

//== compiling in the background =======================================================================================
//
//  A thread compiles the C texts and leaves the result in the cache.  A later run finds it there.  The thread uses no
//  tensor and no graph.

#if defined(OPDI_COMPILES) && !defined(OPD_NO_THREADS)
typedef struct opdi_compile_job {
    pthread_t thread;
    const opd_compiled *compiled;                 /* the thread reads what, name and flags, which do not change */
    opdi_string texts;
    uint64_t hash;                                /* of the texts */
    int process;                                  /* the child of a fork has no such thread */
    bool same;                                    /* the code is for the mode of same bits */
    int32_t done;
} opdi_compile_job;
static int opdi_process_number(void) {
#if defined(_WIN32)
    return 0;
#else
    return (int)getpid();
#endif
}
static void *opdi_compile_job_run(void *user) {
    opdi_compile_job *const job = (opdi_compile_job *)user;
    char path[OPDI_PATH];
    (void)opd_same_bits_set(job->same);
    if (opdi_variant_build(job->compiled, &job->texts, path)) { opd_error_clear(); }  /* a later run sets it again */
    OPDI_PUBLISH(&job->done, 1);
    return NULL;
}
/* Returns whether a thread has compiled the texts with this hash, and forgets it. */
static bool opdi_compile_was_done(opd_compiled *compiled, uint64_t hash) {
    for (int i = 0; i < compiled->nready; i++) {
        if (compiled->ready[i] != hash) { continue; }
        compiled->ready[i] = compiled->ready[--compiled->nready];
        return true;
    }
    return false;
}
/* Starts to compile texts in a thread, which then owns them, unless the caller is to compile them: if that is what
   `compiled` wants, if a thread has just compiled these texts, or if there can be no thread.  Returns whether it has
   started. */
static bool opdi_compile_job_start(opd_compiled *compiled, opdi_string *texts) {
    const uint64_t hash = opdi_hash_bytes(opd_same_bits() + UINT64_C(1), texts->data, texts->length);
    if (!compiled->background || opdi_compile_was_done(compiled, hash) || compiled->job) { return false; }
    opdi_compile_job *const job = (opdi_compile_job *)opdi_alloc(sizeof *job);
    if (!job) {
        opd_error_clear();
        return false;
    }
    memset(job, 0, sizeof *job);
    job->compiled = compiled;
    job->texts = *texts;
    job->hash = hash;
    job->process = opdi_process_number();
    job->same = opd_same_bits();
    if (opdi_thread_start(&job->thread, opdi_compile_job_run, job)) {
        opdi_free(job, sizeof *job);
        return false;
    }
    memset(texts, 0, sizeof *texts);
    compiled->job = job;
    return true;
}
/* Ends the job of `compiled`, if there is one and it is done or `waits` is true.  Returns whether one is still
   running. */
OPDI_INTERNAL bool opdi_compile_job_end(opd_compiled *compiled, bool waits) {
    opdi_compile_job *const job = compiled->job;
    if (!job) { return false; }
    const bool here = job->process == opdi_process_number();
    if (here && !waits && !OPDI_ACQUIRE(&job->done)) { return true; }
    if (here) { (void)pthread_join(job->thread, NULL); }
    if (here) {
        const int last = OPDI_MIN(compiled->nready, OPDI_COMPILE_READY - 1);
        compiled->ready[last] = job->hash;
        compiled->nready = last + 1;
    }
    opdi_string_free(&job->texts);
    opdi_free(job, sizeof *job);
    compiled->job = NULL;
    return false;
}
#else
#if defined(OPDI_COMPILES)
static bool opdi_compile_job_start(opd_compiled *compiled, opdi_string *texts) {
    (void)compiled;
    (void)texts;
    return false;
}
#endif
OPDI_INTERNAL bool opdi_compile_job_end(opd_compiled *compiled, bool waits) {
    (void)compiled;
    (void)waits;
    return false;
}
#endif

//== making the code of a variant ======================================================================================

/* Compiles a C text and loads the result.  Returns 0, or -1 and sets an error. */
static int opdi_variant_load(opdi_variant *variant, opd_compiled *compiled, const opdi_string *text) {
#if !defined(OPDI_COMPILES)
    (void)variant;
    (void)text;
    return opd_fail(OPD_ERROR_REGISTER, "%s: this program was built with OPD_NO_PLUGINS", compiled->what);
#else
    typedef int (*opdi_init)(opdi_c_model *model, const void *weights, void *fixed, void *arena);
    char path[OPDI_PATH], name[64];
    opdi_string list = {NULL, 0, 0, false};
    opdi_c_divide(text, &list);
    const bool later = !list.failed && opdi_compile_job_start(compiled, &list);
    const int rc = list.failed ? -1 : later
        ? opd_fail(OPD_ERROR_LIMIT, "%s: the C compiler is working in the background", compiled->what)
        : opdi_variant_build(compiled, &list, path);
    opdi_string_free(&list);
    if (rc || !(variant->library = opdi_dlopen(path))) { return -1; }
    (void)snprintf(name, sizeof name, "%s_init", compiled->name);
    void *const init = opdi_dlsym(variant->library, name);
    (void)snprintf(name, sizeof name, "%s_call", compiled->name);
    void *const call = opdi_dlsym(variant->library, name);
    (void)snprintf(name, sizeof name, "%s_pack", compiled->name);
    void *const pack = opdi_dlsym(variant->library, name);
    if (!init || !call || !pack) {
        return opd_fail(OPD_ERROR_REGISTER, "%s: the compiled file %s has no function %s", compiled->what, path, name);
    }
    opdi_init start;
    memcpy(&start, &init, sizeof start);
    memcpy(&variant->call, &call, sizeof variant->call);
    memcpy(&variant->pack, &pack, sizeof variant->pack);
    if (!(variant->fixed = opdi_alloc((size_t)variant->fixed_bytes + 64)) ||
        !(variant->spare = opdi_alloc((size_t)variant->arena_bytes + 64))) { return -1; }
    opdi_variant_drop(variant);
    if (start(&variant->model, variant->table, (void *)(((uintptr_t)variant->fixed + 63) & ~(uintptr_t)63),
              (void *)(((uintptr_t)variant->spare + 63) & ~(uintptr_t)63))) {
        return opd_ok() ? opd_fail(OPD_ERROR_KERNEL, "%s: the values that are computed from constants could not be "
                                   "computed", compiled->what) : -1;
    }
    return 0;
#endif
}
/* Checks that graphs in C support the kinds of the inputs.  Returns 0, or -1 and sets an error. */
static int opdi_compiled_kinds(const opd_compiled *compiled, const opd_value *inputs, int ninputs) {
    bool wrong = false;
    for (int i = 0; i < ninputs && compiled->graph; i++) { wrong = wrong || inputs[i].tag != OPD_TAG_TENSOR; }
#if !defined(OPD_NO_PROGRAMS)
    const opd_program *const program = compiled->program;
    wrong = wrong || (program && ninputs != program->ninputs);
    for (int i = 0; i < ninputs && program && !wrong; i++) {
        wrong = inputs[i].tag == OPD_TAG_TENSOR && program->inputs[i].tag != OPD_TAG_TENSOR;
    }
#endif
    return wrong ? opd_fail(OPD_ERROR_ARGUMENT, "%s: an input is missing, or is a number although the graph expects a "
                            "tensor, or a tensor although the program expects a number", compiled->what) : 0;
}
/* Stores the properties of the input tensors in a variant that has no code.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_variant_ports(opdi_variant *variant, const opd_value *inputs) {
    int count = 0;
    variant->ends = (opdi_unit_port *)opdi_variant_alloc(variant, variant->ninputs, sizeof *variant->ends);
    for (int i = 0; i < variant->ninputs && variant->ends; i++) {
        if (inputs[i].tag != OPD_TAG_TENSOR) { continue; }
        opdi_port_keep(&variant->ends[count++], inputs[i].u.t);
    }
    return variant->ends ? 0 : -1;
}
/* Records a graph as a unit without open sizes.  Returns 0, or -1 and sets an error. */
static int opdi_compiled_record(const opd_compiled *compiled, opdi_unit *unit, const opdi_unit_source *source) {
    unit->here = unit->recording.here = unit->recording.calls = unit->recording.draws = true;
    unit->recording.controls = true;
    unit->frozen = compiled->frozen;
    return opdi_compiled_kinds(compiled, source->inputs, source->ninputs) ||
        opdi_unit_record(unit, source, source->inputs) ? -1 : 0;
}
/* Records a graph as `earlier`, whose recording tells which constants the graph writes.  Returns 0, or -1 and sets an
   error. */
static int opdi_compiled_record_writes(const opd_compiled *compiled, const opdi_unit_source *source,
                                       opdi_unit *earlier) {
    if (opdi_unit_begin(earlier, compiled->what, compiled->name)) { return -1; }
    opdi_unit_job job = opdi_unit_job_begin(earlier);
    const int rc = opdi_compiled_record(compiled, earlier, source);
    opdi_unit_job_end(&job);
    return rc;
}
/* Records a graph as a unit, and writes its C code to `text`.  Returns 0, or -1 and sets an error. */
static int opdi_compiled_text(const opd_compiled *compiled, opdi_unit *unit, const opdi_unit_source *source,
                              opdi_string *text) {
    opdi_string header = {NULL, 0, 0, false};
    opdi_unit_job job = opdi_unit_job_begin(unit);
    const int rc = opdi_compiled_record(compiled, unit, source) || opdi_unit_fuse(unit) ||
        opdi_unit_text(unit, text, &header) ? -1 : 0;
    opdi_unit_job_end(&job);
    opdi_string_free(&header);
    return rc;
}
/* Records a graph as a unit with open sizes, and writes its C code to `text`.  Returns 0, or -1 and sets an error. */
static int opdi_compiled_text_open(const opd_compiled *compiled, opdi_open *open, const opdi_unit_source *source,
                                   opdi_string *text) {
    opdi_string header = {NULL, 0, 0, false};
    opdi_unit_job job = opdi_unit_job_begin(&open->units[0]);
    open->here = true;
    open->frozen = compiled->frozen;
    open->source = source;
    const int rc = opdi_compiled_kinds(compiled, source->inputs, source->ninputs) ||
        opdi_open_find(open, text, &header) ? -1 : 0;
    opdi_unit_job_end(&job);
    opdi_string_free(&header);
    return rc;
}
/* Stores the properties of a unit in a variant; compiles and loads the C text of the unit.  Returns 0, or -1 and sets
   an error. */
static int opdi_variant_made(opdi_variant *variant, opd_compiled *compiled, opdi_unit *unit,
                             const opdi_string *text) {
    unit->nresults = opdi_compiled_nresults(compiled);
    return opdi_variant_keep(variant, unit) || opdi_variant_places(variant, compiled) ||
        opdi_variant_load(variant, compiled, text) ? -1 : 0;
}
/* Makes the code of a variant with open sizes: records, writes, compiles and loads it.  Returns 0, or -1 and sets an
   error. */
static int opdi_variant_make_open(opdi_variant *variant, opd_compiled *compiled,
                                  const opdi_unit_source *source) {
    opdi_string text = {NULL, 0, 0, false};
    opdi_open *const open = (opdi_open *)opdi_alloc(sizeof *open);
    int count = 0;
    if (!open) { return -1; }
    memset(open, 0, sizeof *open);
    int rc = opdi_unit_begin(&open->units[0], compiled->what, compiled->name) ||
        opdi_compiled_text_open(compiled, open, source, &text) ||
        opdi_variant_made(variant, compiled, &open->units[0], &text) ? -1 : 0;
    const int dims = rc ? 0 : opdi_open_dims(&open->units[0]);
    opdi_open_terms *const shapes = rc ? NULL
        : (opdi_open_terms *)opdi_variant_alloc(variant, 2 * dims, sizeof *shapes);
    variant->ranges = !shapes ? NULL
        : (unsigned char *)opdi_variant_alloc(variant, opdi_open_ranges(&compiled->open), 1);
    if (variant->ranges) {
        memcpy(shapes, open->units[0].shapes, 2 * (size_t)dims * sizeof *shapes);
        variant->shapes = shapes;
        variant->open = compiled->open;
        for (int i = 0; i < source->ninputs; i++) {
            if (source->inputs[i].tag != OPD_TAG_TENSOR) { continue; }
            opdi_port_keep(&variant->ends[count++], source->inputs[i].u.t);
        }
    } else { rc = -1; }
    for (int i = 0; i < 2; i++) { opdi_unit_free(&open->units[i]); }
    opdi_arena_free(&open->arena);
    opdi_string_free(&text);
    opdi_free(open, sizeof *open);
    return rc;
}
/* Makes the code of a variant without open sizes, as opdi_variant_make_open does. */
static int opdi_variant_make_fixed(opdi_variant *variant, opd_compiled *compiled,
                                   const opdi_unit_source *source) {
    opdi_string text = {NULL, 0, 0, false};
    opdi_unit unit;
    const int rc = opdi_unit_begin(&unit, compiled->what, compiled->name) ||
        opdi_compiled_text(compiled, &unit, source, &text) ||
        opdi_variant_made(variant, compiled, &unit, &text) ? -1 : 0;
    opdi_unit_free(&unit);
    opdi_string_free(&text);
    return rc;
}
/* Makes the code of a variant, with open sizes if `open` is true.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_variant_make(opdi_variant *variant, opd_compiled *compiled, const opd_value *inputs,
                                    int ninputs, bool open) {
    opdi_unit_source source = {compiled->what, compiled->graph, compiled->program, inputs, ninputs, compiled->name,
                               false, open ? &compiled->open : NULL, NULL};
    opdi_unit earlier;
    int rc = 0;
    memset(&earlier, 0, sizeof earlier);
    if (compiled->frozen) {
        rc = opdi_compiled_record_writes(compiled, &source, &earlier);
        source.earlier = &earlier.recording;
    }
    if (rc == 0 && compiled->frozen && !open && (!compiled->background || compiled->nready)) {
        variant->plain = opdi_compiled_time_first(compiled, &earlier, inputs);
    }
    if (rc == 0) {
        rc = open ? opdi_variant_make_open(variant, compiled, &source)
            : opdi_variant_make_fixed(variant, compiled, &source);
    }
    opdi_unit_free(&earlier);
    return rc;
}
OPDI_INTERNAL opdi_variant *opdi_variant_new(const opd_value *inputs, int ninputs) {
    opdi_variant *const variant = (opdi_variant *)opdi_alloc(sizeof *variant);
    if (!variant) { return NULL; }
    memset(variant, 0, sizeof *variant);
    variant->ninputs = ninputs;
    variant->same = opd_same_bits();
    variant->inputs = (opd_value *)opdi_variant_alloc(variant, ninputs, sizeof *variant->inputs);
    for (int i = 0; i < ninputs && variant->inputs; i++) { variant->inputs[i] = inputs[i]; }
    return variant;
}
