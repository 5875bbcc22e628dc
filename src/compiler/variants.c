#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>variants     running the code that was compiled for one kind of inputs
//
//  A graph or program is compiled separately for each kind of inputs (dtypes, sizes, ...), after an uncompiled run has
//  shown that such inputs are valid.  Its constants are passed as inputs: their addresses are looked up in each run.
//  If constants are frozen, the code finds the addresses of those that it does not write in a table of pointers.
//----------------------------------------------------------------------------------------------------------------------

static bool opdi_port_fits(const opdi_unit_port *end, const opd_tensor *tensor) {
    if (tensor->ndim != end->ndim || tensor->dtype != (int32_t)end->dtype) { return false; }
    for (int i = 0; i < end->ndim; i++) {
        if (tensor->dims[i] != end->sizes[i]) { return false; }
        if (tensor->dims[tensor->ndim + i] != end->strides[i] && end->sizes[i] != 1) { return false; }
    }
    return true;
}
OPDI_INTERNAL void opdi_port_keep(opdi_unit_port *end, const opd_tensor *tensor) {
    end->dtype = (opd_scalar_type)tensor->dtype;
    end->ndim = tensor->ndim;
    memcpy(end->sizes, tensor->dims, tensor->ndim * sizeof *end->sizes);
    memcpy(end->strides, tensor->dims + tensor->ndim, tensor->ndim * sizeof *end->strides);
}
/* Returns whether a tensor fits input number `input`, for which the variant has the properties `end`, with the open
   sizes `at`. */
static bool opdi_port_fits_open(const opdi_variant *variant, const opdi_unit_port *end, const opd_tensor *tensor,
                                int input, const opdi_open_at *at) {
    int64_t dense = 1;
    bool whole = true;
    if (tensor->ndim != end->ndim || tensor->dtype != (int32_t)end->dtype) { return false; }
    for (int i = end->ndim - 1; i >= 0; i--) {
        whole = whole && (end->sizes[i] == 1 || end->strides[i] == dense);
        dense *= end->sizes[i];
    }
    if (whole && !opd_is_contiguous(tensor)) { return false; }
    for (int i = 0; i < end->ndim; i++) {
        const int64_t size = tensor->dims[i];
        if (size != opdi_open_size(&variant->open, input, i, at, end->sizes[i]) ||
            (!whole && size != 1 && tensor->dims[tensor->ndim + i] != end->strides[i])) { return false; }
    }
    return true;
}
/* Returns whether inputs are of the kind for which the variant was compiled.  Sets *at to their open sizes. */
OPDI_INTERNAL bool opdi_variant_is_of(const opdi_variant *variant, const opd_value *inputs, int ninputs,
                                     opdi_open_at *at) {
    if (variant->gone || ninputs != variant->ninputs || variant->same != opd_same_bits() ||
        (variant->open.n && !opdi_open_find_sizes(&variant->open, inputs, ninputs, at))) { return false; }
    for (int i = 0, end = 0; i < ninputs; i++) {
        const opd_value *const is = &variant->inputs[i];
        if (inputs[i].tag != is->tag) { return false; }
        if (is->tag == OPD_TAG_TENSOR) {
            const opd_tensor *const tensor = inputs[i].u.t;
            const opdi_unit_port *const its = &variant->ends[end++];
            if (!(variant->open.n ? opdi_port_fits_open(variant, its, tensor, i, at) : opdi_port_fits(its, tensor)) ||
                (variant->whole && tensor->data != tensor->storage->data)) { return false; }
        } else if (is->tag == OPD_TAG_FLOAT ? memcmp(&inputs[i].u.d, &is->u.d, sizeof is->u.d) != 0
                   : is->tag != OPD_TAG_NONE && is->tag != OPD_TAG_DEFAULT && inputs[i].u.i != is->u.i) {
            return false;
        }
    }
    return true;
}
/* Returns whether the variant is to be used for inputs: they are of its kind, and uncompiled runs are not faster for
   open sizes in their range. */
OPDI_INTERNAL bool opdi_variant_fits(const opdi_variant *variant, const opd_value *inputs, int ninputs,
                                     opdi_open_at *at) {
    return opdi_variant_is_of(variant, inputs, ninputs, at) &&
        (!variant->open.n || OPDI_LOAD(&variant->ranges[opdi_open_range(&variant->open, at)]) != OPDI_RANGE_SLOW);
}

/* Returns a reason why compiled code cannot replace calls on this thread (a mode or transform is active), or NULL if it
   can. */
OPDI_INTERNAL const char *opdi_compiled_modes(const opdi_thread *thread) {
    const opdi_innermost *const in = &thread->innermost;
    if (opdi_recording_now) { return "another graph is being compiled, so new tensors have no memory"; }
    if (thread->state.autocast) { return "an autocast region is open"; }
    if (thread->state.forward == OPDI_FORWARD_OPEN || in->level) { return "a level of forward mode is open"; }
    if (in->layer || in->rule || in->tracer || in->fake || in->mutation) { return "a transform or mode is open"; }
    if (thread->state.include & ~(OPDI_TENSOR_KEYS | OPDI_DEFAULT_INCLUDE)) { return "a dispatch key is included"; }
    if (!(thread->state.allow & OPD_BIT_OF(OPD_F_DENSE))) { return "kernels of devices are excluded"; }
    if (OPDI_LOAD(&opdi_works_running)) { return "a collective operation is running"; }
    return NULL;
}
/* Returns a reason why a tensor cannot be passed to compiled code, or NULL if it can.  `written` is true if the code
   writes the tensor; `anywhere`, if the tensor may be on any device. */
OPDI_INTERNAL const char *opdi_compiled_tensor(const opdi_thread *thread, const opd_tensor *tensor, bool written,
                                               bool anywhere) {
    const unsigned unusual = OPDI_WRAPPED | OPDI_LAZY | OPDI_STORED | OPDI_BATCHED | OPDI_TRACED;
    const bool view = tensor->flags & OPDI_IS_VIEW;
    const bool grad = (tensor->flags & OPDI_REQUIRES_GRAD) ||
        (view && (opdi_view_record_of(tensor)->base->flags & OPDI_REQUIRES_GRAD));
    const bool usual = !(tensor->functionality & ~OPDI_TENSOR_KEYS) && !(tensor->flags & unusual);
    if (!usual) { return "a tensor is of another kind"; }
    if (!anywhere && opd_tensor_device(tensor).type != OPD_CPU) { return "a tensor is on another device"; }
    if (grad && !thread->state.no_grad) { return "a tensor requires grad while grad mode is on"; }
    if (grad && view && written) { return "a view that has a gradient is written"; }
    if (tensor->storage->duals) { return "a tensor has a tangent"; }
    if (written && opdi_is_inference(tensor) && !thread->state.inference) { return "an inference tensor is written"; }
    return NULL;
}
static bool opdi_tensors_overlap(const opd_tensor *a, const opd_tensor *b) {
    return a->numel && b->numel && a->data < b->data + opdi_span(b) && b->data < a->data + opdi_span(a);
}
/* Fills `all` with the tensors that a run passes to compiled code: the inputs, then the constants.  Returns a reason
   why they cannot be passed, or NULL if they can. */
OPDI_INTERNAL const char *opdi_variant_tensors(const opdi_thread *thread, const opdi_variant *variant,
                                               const opd_value *inputs, opd_tensor **all) {
    int count = 0;
    for (int i = 0; i < variant->ninputs; i++) {
        if (inputs[i].tag == OPD_TAG_TENSOR) { all[count++] = inputs[i].u.t; }
    }
    for (int i = 0; i < variant->nconstants; i++) { all[count++] = variant->constants[i]; }
    for (int i = 0; i < count; i++) {
        const char *const why = opdi_compiled_tensor(thread, all[i], variant->written[i], false);
        if (why) { return why; }
        if (count - i <= variant->nconstants && (!opdi_port_fits(&variant->ends[i], all[i]) ||
                                                 (variant->whole && all[i]->data != all[i]->storage->data))) {
            return "a constant has another size";
        }
        for (int k = 0; k < count && variant->written[i]; k++) {
            if (k != i && opdi_tensors_overlap(all[i], all[k])) { return "a tensor that is written shares its memory"; }
        }
    }
    for (int i = 0; i < variant->ncalled; i++) {
        if (variant->called[i] && !opdi_extern_holds(variant->called[i])) {
            return "a constant that is not copied has another size or dtype";
        }
    }
    for (int i = 0; i < variant->nfrozen; i++) {
        const opd_tensor *const tensor = variant->frozen[i];
        if (!tensor) { continue; }
        if (tensor->data != variant->table[i] || tensor->storage != variant->storages[i] ||
            OPDI_LOAD(&tensor->storage->version) != variant->versions[i] ||
            !opdi_port_fits(&variant->kept[i], tensor)) {
            return "a frozen constant has changed";
        }
        if (opdi_compiled_tensor(thread, tensor, false, false)) {
            return "a frozen constant requires grad or is unusual";
        }
        for (int k = 0; k < count && variant->writes; k++) {
            if (variant->written[k] && opdi_tensors_overlap(tensor, all[k])) { return "a frozen constant is written"; }
        }
    }
    return NULL;
}
/* Returns a new tensor for the output `end` of a run.  If `shapes` is not NULL, the sizes and strides are computed from
   `shapes` for the open sizes `at`.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_variant_output(const opdi_unit_port *end, const opdi_open_terms *shapes,
                                       const opdi_open_at *at) {
    int64_t all[2][OPD_MAX_DIMS];
    if (!shapes) {
        return opd_empty_strided(opd_ints_of(end->sizes, end->ndim), opd_ints_of(end->strides, end->ndim), end->dtype);
    }
    for (int i = 0; i < 2 * end->ndim; i++) { all[i % 2][i / 2] = opdi_open_number(&shapes[i], at); }
    return opd_empty_strided(opd_ints_of(all[0], end->ndim), opd_ints_of(all[1], end->ndim), end->dtype);
}
/* Calls the compiled code of a variant, with the open sizes as arguments.  Returns the code's return value; 0 means
   success. */
static int opdi_variant_call(const opdi_variant *variant, const opdi_c_model *model, const opdi_open_at *at,
                             void *const *inputs, void *const *outputs) {
    int (*one)(const opdi_c_model *, ptrdiff_t, void *const *, void *const *);
    int (*two)(const opdi_c_model *, ptrdiff_t, ptrdiff_t, void *const *, void *const *);
    int (*three)(const opdi_c_model *, ptrdiff_t, ptrdiff_t, ptrdiff_t, void *const *, void *const *);
    int (*four)(const opdi_c_model *, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, void *const *, void *const *);
    ptrdiff_t n[OPDI_OPEN_SIZES];
    if (!variant->open.n) { return variant->call(model, inputs, outputs); }
    for (int i = 0; i < OPDI_OPEN_SIZES; i++) { n[i] = (ptrdiff_t)at->sizes[i]; }
    memcpy(&one, &variant->call, sizeof one);
    memcpy(&two, &variant->call, sizeof two);
    memcpy(&three, &variant->call, sizeof three);
    memcpy(&four, &variant->call, sizeof four);
    return variant->open.n == 1 ? one(model, n[0], inputs, outputs)
        : variant->open.n == 2 ? two(model, n[0], n[1], inputs, outputs)
        : variant->open.n == 3 ? three(model, n[0], n[1], n[2], inputs, outputs)
        : four(model, n[0], n[1], n[2], n[3], inputs, outputs);
}
/* Returns memory for the arena of a run: the memory that an earlier run gave to opdi_variant_arena_put, or new
   memory. */
static void *opdi_variant_arena_take(opdi_variant *variant) {
    void *arena = OPDI_ACQUIRE(&variant->spare);
    while (arena && !OPDI_EXCHANGE(&variant->spare, &arena, NULL)) { }
    return arena ? arena : opdi_alloc((size_t)variant->arena_bytes + 64);
}
static void opdi_variant_arena_put(opdi_variant *variant, void *arena) {
    void *none = NULL;
    if (OPDI_ACQUIRE(&variant->spare) || !OPDI_EXCHANGE(&variant->spare, &none, arena)) {
        opdi_free(arena, (size_t)variant->arena_bytes + 64);
    }
}
/* Runs compiled code on the tensors `all`.  New results belong to the innermost scope.  Returns 0.  Returns 1 if the
   code fails but has neither written inputs nor used random numbers; the caller can then run the graph uncompiled.  For
   other failures, returns -1 and sets an error. */
OPDI_INTERNAL int opdi_variant_run(opdi_variant *variant, const opdi_open_at *at, opd_tensor **all,
                                   opd_value *results) {
    opdi_c_model model = variant->model;
    const opdi_open_terms *shapes = variant->shapes;
    const size_t count = (size_t)(variant->nends + variant->noutputs + 1);
    void **const inputs = (void **)opdi_scope_alloc(count * sizeof *inputs);
    opd_tensor **const made = (opd_tensor **)opdi_scope_alloc((size_t)(variant->noutputs + 1) * sizeof *made);
    if (!inputs || !made) { return -1; }
    void **const outputs = inputs + variant->nends;
    for (int i = 0; i < variant->nends; i++) { inputs[i] = all[i]->data; }
    for (int i = 0; i < variant->noutputs; i++) {
        if (!(made[i] = opdi_variant_output(&variant->outputs[i], shapes, at))) { return -1; }
        if (shapes) { shapes += 2 * variant->outputs[i].ndim; }
        outputs[i] = made[i]->data;
    }
    void *const arena = opdi_variant_arena_take(variant);
    if (!arena) { return -1; }
    model.arena = (unsigned char *)(((uintptr_t)arena + 63) & ~(uintptr_t)63);
    const int rc = opdi_variant_call(variant, &model, at, inputs, outputs);
    opdi_variant_arena_put(variant, arena);
    for (int i = 0; i < variant->nends && variant->writes; i++) {
        if (variant->written[i] && !opdi_is_inference(all[i])) { (void)OPDI_ADD(&all[i]->storage->version, 1u); }
    }
    for (int i = 0; i < variant->nresults; i++) {
        const int32_t from = variant->from[i];
        const opdi_unit_view *const view = &variant->views[i];
        if (from != OPDI_FROM_VIEW) {
            results[i] = from == OPDI_FROM_NUMBER ? variant->numbers[i]
                : opd_value_tensor(from < 0 ? all[~from] : made[from]);
            continue;
        }
        opd_tensor *const base = view->of < 0 ? all[~view->of] : made[view->of];
        opd_tensor *const tensor = opd_as_strided_full(base, opd_ints_of(view->sizes, view->ndim),
            opd_ints_of(view->strides, view->ndim), opd_value_int(opd_storage_offset(base).u.i + view->offset));
        if (!tensor) { return -1; }
        results[i] = opd_value_tensor(tensor);
    }
    const bool once = variant->writes || variant->draws;
    if (rc && !once) { opd_error_clear(); }       /* such as the error of a called operator; the uncompiled run sets it
                                                     again */
    if (rc == 0 || !once) { return rc != 0; }
    if (!opd_ok()) { return -1; }
    return opd_fail(OPD_ERROR_INDEX, rc == 1 ? "opd_compiled_run: an index is out of range"
                    : "opd_compiled_run: integer division by zero");
}
/* Calls operator number `which`, which cannot be written in C; compiled code calls this function.  Returns 0, or 4 and
   sets an error. */
OPDI_INTERNAL int opdi_variant_extern(void *context, int which, const void *in, void *out) {
    const opdi_variant *const variant = (const opdi_variant *)context;
    if (opdi_run_ends(opdi_self())) { return -1; }
    return opdi_extern_run(variant->called[which], (const unsigned char *)in, (unsigned char *)out);
}
OPDI_INTERNAL int opdi_variant_kernel(void *context, int which, const void *left, const void *right, void *out) {
    return opdi_kernel_run(&((const opdi_variant *)context)->kernels[which], left, right, out);
}

//== memory of variants ================================================================================================

/* Gives pages of mapped files back to the system, so that they need no memory until they are read again.  Pages that
   were written, and other memory, stay. */
static void opdi_pages_drop(const void *memory, size_t size) {
#if defined(__linux__) && defined(MADV_DONTNEED)
    enum { OPDI_PAGE_FILE = 5 };                  /* the page is in memory, and belongs to a file */
    uint64_t words[256];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = ((uintptr_t)memory + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)memory + size) / page * page;
    const int fd = at < end ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) : -1;
    while (fd >= 0 && at < end) {
        const size_t count = OPDI_MIN((end - at) / page, sizeof words / sizeof *words);
        if (pread(fd, words, count * sizeof *words, (off_t)(at / page * sizeof *words)) !=
            (ssize_t)(count * sizeof *words)) { break; }
        for (size_t i = 0, first; i < count; i++) {
            for (first = i; i < count && (words[i] >> 61 & 5) == OPDI_PAGE_FILE;) { i++; }
            if (i > first) { (void)madvise((void *)(at + first * page), (i - first) * page, MADV_DONTNEED); }
        }
        at += count * page;
    }
    if (fd >= 0) { (void)close(fd); }
#else
    (void)memory;
    (void)size;
#endif
}
/* Gives the pages of a frozen constant back to the system, if `which` is one. */
OPDI_INTERNAL void opdi_variant_drop_one(const opdi_variant *variant, int32_t which) {
    const opd_tensor *const tensor = which < 0 ? NULL : variant->frozen[which];
    if (tensor) { opdi_pages_drop(tensor->data, (size_t)opdi_span(tensor)); }
}
/* Gives the pages of all frozen constants back to the system.  Runs read again what they need, which is less if the
   code reads packed copies. */
OPDI_INTERNAL void opdi_variant_drop(const opdi_variant *variant) {
    for (int i = 0; i < variant->nfrozen; i++) { opdi_variant_drop_one(variant, i); }
}
/* Unloads the code of a variant, and frees the memory that only runs of the code need. */
OPDI_INTERNAL void opdi_variant_unload(opdi_variant *variant) {
    if (variant->library) { opdi_dlclose(variant->library); }
    for (int i = 0; i < variant->nfrozen; i++) {
        if (variant->storages[i]) { opdi_storage_drop(variant->storages[i]); }
    }
    if (variant->fixed) {
        opdi_pages_forget(variant->fixed, (size_t)variant->fixed_bytes);     /* may be as large as all weights */
        opdi_free(variant->fixed, (size_t)variant->fixed_bytes + 64);
    }
    if (variant->spare) { opdi_free(variant->spare, (size_t)variant->arena_bytes + 64); }
    variant->library = variant->fixed = variant->spare = NULL;
    variant->nfrozen = 0;
}
/* Returns whether a call may have another effect in a second run: an operator of the program, or random numbers. */
OPDI_INTERNAL bool opdi_extern_once(const opdi_extern_call *called) {
    return called->draws || strncmp(opd_op_name(called->op), "aten::", 6) != 0;
}
/* Returns the number of results of the graph or program. */
OPDI_INTERNAL int opdi_compiled_nresults(const opd_compiled *compiled) {
#if !defined(OPD_NO_PROGRAMS)
    if (compiled->program) { return compiled->program->noutputs; }
#endif
    return compiled->graph->noutputs;
}
