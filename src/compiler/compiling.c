#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>compiling    writing graphs as C files, or compiling and loading them in this process
//
//  Public functions: some write C files, others compile a graph while the program runs and run the compiled code.
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

/* Words that cannot be the name of a model, because they have a meaning in C, in C++ or in the written text. */
static const char opdi_c_words[] =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr "
    "const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false float "
    "for friend goto if inline int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq "
    "private protected public register reinterpret_cast restrict return short signed sizeof static static_assert "
    "static_cast struct switch template this thread_local throw true try typedef typeid typename typeof union "
    "unsigned using virtual void volatile wchar_t while xor xor_eq concept requires linux unix i386 errno "
    "vector vector64 RESTRICT LANES PARTS WIDTH WIDTH64 NULL NAN INFINITY HUGE_VAL size_t ptrdiff_t float_t double_t "
    "memcpy memmove memset memcmp memchr memccpy memmem strlen strcpy strncpy strcat strncat strcmp strncmp strchr "
    "strrchr strstr strtok strspn strcspn strpbrk strcoll strxfrm strerror strdup strndup strnlen strsep strlcpy "
    "strlcat strcasecmp index rindex bcopy bzero bcmp ffs stpcpy y0 y1 yn j0 j1 jn gamma signgam significand drem "
    "acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 exp10 expm1 frexp ldexp log log10 "
    "log1p log2 logb ilogb modf scalbn scalbln scalb pow sqrt cbrt hypot erf erfc tgamma lgamma ceil floor nearbyint "
    "rint lrint llrint round lround llround trunc fmod remainder remquo copysign nan nextafter nexttoward fdim fmax "
    "fmin fma fabs isnan isinf isfinite isnormal signbit fpclassify finite pow10 sincos abs first_f32 first_f64 "
    "first_i64 sink_f32 sink_f64 sink_i64 sorted_f32 sorted_f64 sorted_i64 tile1_f32 tile2_f32 tile3_f32 tile4_f32 "
    "tile5_f32 tile6_f32 tiles_f32 tiles_f64 tile1_f64 tile2_f64 tile3_f64 tile4_f64 tile5_f64 tile6_f64 "
    "FRESH APART lanes_4 lanes_8 lanes_16 NO_SUMS_4 NO_SUMS_8 NO_SUMS_16 ";
/* Returns whether `name` cannot be the name of a model. */
static bool opdi_c_taken(const char *name) {
    char word[48];
    const size_t length = strlen(name), kernel = name[0] == 'k' ? strspn(name + 1, "0123456789") : 0;
    for (size_t cut = 0; cut < 2 && cut < length; cut++) {     /* cut 1: without the last letter, to find names such as
                                                                  sinf and sinl */
        if (cut && name[length - 1] != 'f' && name[length - 1] != 'l') { break; }
        (void)snprintf(word, sizeof word, " %.*s ", (int)(length - cut), name);
        if (strstr(opdi_c_words, word)) { return true; }
    }
    return opdi_c_has(name) || (kernel && name[1 + kernel] == '_') || strstr(name, "int8") || strstr(name, "int16") ||
        strstr(name, "int32") || strstr(name, "int64") || strstr(name, "intptr") || strstr(name, "intmax") ||
        strncmp(name, "__", 2) == 0;
}
/* Begins a unit for the public function `what`: checks the model's name and registers the lazy device.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_unit_begin(opdi_unit *unit, const char *what, const opd_c_options *options) {
    const char *const name = options && options->name ? options->name : "model";
    memset(unit, 0, sizeof *unit);
    unit->what = what;
    unit->name = name;
    if (!opd_ok()) { return -1; }
    if (opdi_recording_now) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s cannot be called inside of another compilation", what);
    }
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (!*name || name[length] || length > 40 || (*name >= '0' && *name <= '9')) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: '%.60s' is not a name in C of at most 40 letters, digits and "
                        "underscores", what, name);
    }
    if (opdi_c_taken(name)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the name '%s' is reserved in C or C++", what, name);
    }
    return opdi_lazy_open(what);
}
OPDI_INTERNAL opdi_unit_job opdi_unit_job_begin(opdi_unit *unit) {
    opdi_unit_job job;
    job.scope = opd_scope_open();
    job.was = opd_grad_mode_set(false);
    opdi_recording_now = &unit->recording;
    opdi_generator_pause_set(true);
    (void)opdi_usual_lazy_set(true);
    return job;
}
OPDI_INTERNAL void opdi_unit_job_end(opdi_unit_job *job) {
    opdi_recording_now = NULL;
    opdi_generator_pause_set(false);
    (void)opdi_usual_lazy_set(false);
    (void)opd_grad_mode_set(job->was);
    opd_scope_close(&job->scope);
}
/* Compiles a graph or a program to C files in `folder`.  Returns 0, or -1 and sets an error. */
static int opdi_unit_written(const opdi_unit_source *source, const char *folder) {
    const bool any = source->options && source->options->open;
    opdi_open *const open = any ? (opdi_open *)opdi_alloc(sizeof *open) : NULL;
    opdi_unit only, *const unit = open ? &open->units[0] : &only;
    int rc = -1;
    if (any && !open) { return -1; }
    if (open) { memset(open, 0, sizeof *open); }
    if (opdi_unit_begin(unit, source->what, source->options) == 0) {
        opdi_unit_job job = opdi_unit_job_begin(unit);
        if (open) {
            open->source = source;
            opdi_string text = {NULL, 0, 0, false}, header = {NULL, 0, 0, false};
            rc = opdi_open_find(open, &text, &header) || opdi_unit_files(unit, folder, &text, &header) ? -1 : 0;
            opdi_string_free(&text);
            opdi_string_free(&header);
        } else {
            unit->recording.calls = source->options && source->options->calls;
            rc = opdi_unit_record(unit, source, source->inputs) || opdi_unit_fuse(unit) || opdi_unit_write(unit, folder)
                ? -1 : 0;
        }
        opdi_unit_job_end(&job);
    }
    for (int i = 0; open && i < 2; i++) { opdi_unit_free(&open->units[i]); }
    if (open) { opdi_arena_free(&open->arena); }
    if (open) { opdi_free(open, sizeof *open); }
    else { opdi_unit_free(unit); }
    return rc;
}

int opd_graph_write_c(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, const char *folder,
                      const opd_c_options *options) {
    if (!opd_ok()) { return -1; }
    if (!graph || !folder || ninputs != graph->ninputs || (ninputs && !inputs)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_write_c: a graph, a folder and an example of each of its inputs "
                        "are needed");
    }
    const size_t size = (size_t)(ninputs + 1) * sizeof(opd_value);
    opd_value *const values = (opd_value *)opdi_alloc(size);
    if (!values) { return -1; }
    for (int i = 0; i < ninputs; i++) { values[i] = opd_value_tensor(inputs[i]); }
    const opdi_unit_source source = {"opd_graph_write_c", graph, NULL, values, ninputs, options};
    const int rc = opdi_unit_written(&source, folder);
    opdi_free(values, size);
    return rc;
}
int opd_program_write_c(const opd_program *program, const opd_value *inputs, int ninputs, const char *folder,
                        const opd_c_options *options) {
#if defined(OPD_NO_PROGRAMS)
    (void)program;
    (void)inputs;
    (void)ninputs;
    (void)folder;
    (void)options;
    return opd_fail(OPD_ERROR_NOT_FOUND, "opd_program_write_c is left out: OPD_NO_PROGRAMS was defined");
#else
    if (!opd_ok()) { return -1; }
    if (!program || !folder || ninputs != program->ninputs || (ninputs && !inputs)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_write_c: a program, a folder and an example of each of its "
                        "inputs are needed");
    }
    const opdi_unit_source source = {"opd_program_write_c", NULL, program, inputs, ninputs, options};
    return opdi_unit_written(&source, folder);
#endif
}

OPDI_COLD_END

//== graphs that are compiled and run in this process ==================================================================
//
//  A graph or program is compiled separately for each kind of inputs (dtypes, sizes, ...), after an uncompiled run has
//  shown that such inputs are valid.  Its constants are passed as inputs: their addresses are looked up in each run.
//  If constants are frozen, the code finds their addresses in a table of pointers.

/* The struct of a model, as the generated code declares it. */
typedef struct opdi_c_model {
    const unsigned char *weights;                 /* the weights; if constants are frozen, a table of pointers */
    unsigned char *fixed, *arena;
    int (*call)(void *context, int which, const void *in, void *out);          /* calls operator number `which`, which
                                                                                  cannot be written in C */
    int (*kernel)(void *context, int which, const void *left, const void *right, void *out);   /* runs kernel number
                                                                                                  `which` of the
                                                                                                  library */
    void (*clock)(void *context, int which);      /* NULL, or is called before the nest of kernel number `which`; and
                                                     with -1 after it */
    const unsigned char *ways;                    /* for each kernel: 1 if it computes its nest, 0 if the loops do */
    void *context;
} opdi_c_model;
/* A variant: the code that was compiled for one kind of inputs (dtypes, sizes, ...). */
typedef struct opdi_variant {
    struct opdi_variant *next;
    opdi_arena memory;                            /* the memory of everything to which this struct points */
    opd_value *inputs;                            /* the values of the inputs; of a tensor, only the tag */
    opdi_unit_port *ends, *outputs;               /* ends: the properties of the input tensors, followed by the
                                                     properties of the constants */
    bool *written;                                /* for each of `ends`: whether the code writes it */
    int32_t *from;                                /* for each result: its origin, as in opdi_unit.from */
    opd_value *numbers;                           /* the results that are not tensors */
    opdi_unit_view *views;                        /* the results that are views */
    opd_tensor **constants, **frozen;
    opdi_unit_port *kept;                         /* the properties of the frozen constants */
    opdi_storage **storages;                      /* the storages of the frozen constants; references, so that no other
                                                     storage gets their addresses */
    uint32_t *versions;
    const void **table;                           /* the addresses of the data of the frozen constants */
    int ninputs, nends, nconstants, nfrozen, noutputs, nresults;
    bool writes, draws, whole, asks;              /* writes: the code writes an input; draws: the code calls an operator
                                                     that uses random numbers; whole, asks: as in opdi_unit */
    int64_t arena_bytes, fixed_bytes;
    int nopen;                                    /* number of open sizes */
    int *open[2];                                 /* open[0], open[1]: for each input, the dim that has the first or
                                                     second open size, or -1 */
    int64_t least[2], most[2];
    opdi_open_terms *shapes;                      /* the sizes and strides of the outputs, as in opdi_unit */
    void *library, *fixed, *spare;                /* spare: memory for the arena of a run, while no run uses it */
    opdi_c_model model;
    opdi_extern_call **called;                    /* the operators that the code calls; the index is the operator's
                                                     number */
    opdi_nest_kernel *kernels;                    /* the kernels of the library; the index is the kernel's number */
    unsigned char *ways;                          /* as in opdi_c_model */
    int64_t (*times)[2], started;                 /* times[i][k]: the shortest time of the nest of kernel i, computed in
                                                     way k, or 0; started: when the current nest began */
    int nkernels, timed;                          /* timed: the kernel whose nest is running while nests are timed */
    bool once;                                    /* true: the code cannot be timed, because a second run with the same
                                                     inputs may have another effect */
    int (*call)(const opdi_c_model *model, void *const *inputs, void *const *outputs);
    const char *why;                              /* the reason why this kind of inputs is not compiled; NULL if it is
                                                     compiled */
} opdi_variant;
struct opd_compiled {
    const opd_graph *graph;                       /* NULL if a program is compiled */
    const opd_program *program;
    const char *what;
    char name[48];
    char *flags;                                  /* the flags for the C compiler; NULL: flags for this machine */
    bool frozen, said;                            /* said: a warning has said that these inputs run uncompiled */
    int kinds, count;                             /* kinds: the most variants that are made; count: the number of
                                                     variants */
    int ninputs, *dims;                           /* dims: the arrays `open` and `open_2` of the options, one after the
                                                     other */
    opd_c_options open;                           /* the options about open sizes */
    opdi_mutex lock;                              /* is held while code is compiled; protects plain, count and
                                                     variants */
    int plain;                                    /* the number of uncompiled runs that are in progress */
    opdi_variant *variants;
    const char *reason;                           /* the reason why the last run was not compiled, or NULL */
};

static bool opdi_port_fits(const opdi_unit_port *end, const opd_tensor *tensor) {
    if (tensor->ndim != end->ndim || tensor->dtype != (int8_t)end->dtype) { return false; }
    for (int i = 0; i < end->ndim; i++) {
        if (tensor->dims[i] != end->sizes[i]) { return false; }
        if (tensor->dims[tensor->ndim + i] != end->strides[i] && end->sizes[i] != 1) { return false; }
    }
    return true;
}
static void opdi_port_keep(opdi_unit_port *end, const opd_tensor *tensor) {
    end->dtype = (opd_scalar_type)tensor->dtype;
    end->ndim = tensor->ndim;
    memcpy(end->sizes, tensor->dims, tensor->ndim * sizeof *end->sizes);
    memcpy(end->strides, tensor->dims + tensor->ndim, tensor->ndim * sizeof *end->strides);
}
/* Returns whether a tensor fits the input `end`.  The dims open[0] and open[1] of the input (-1: none) have open sizes,
   which must be in their ranges.  sizes[i] is open size i, or 0 if no input has had it yet: the first input that has it
   sets sizes[i], and later inputs must have the same size. */
static bool opdi_port_fits_open(const opdi_variant *variant, const opdi_unit_port *end, const opd_tensor *tensor,
                                const int open[2], int64_t sizes[2]) {
    int64_t dense = 1;
    bool whole = true;
    if (tensor->ndim != end->ndim || tensor->dtype != (int8_t)end->dtype) { return false; }
    for (int i = end->ndim - 1; i >= 0; i--) {
        whole = whole && (end->sizes[i] == 1 || end->strides[i] == dense);
        dense *= end->sizes[i];
    }
    if (whole && !opd_is_contiguous(tensor)) { return false; }
    for (int i = 0; i < end->ndim; i++) {
        const int64_t size = tensor->dims[i];
        const int which = i == open[0] ? 0 : i == open[1] ? 1 : -1;
        if (!whole && size != 1 && tensor->dims[tensor->ndim + i] != end->strides[i]) { return false; }
        if (which < 0) {
            if (size != end->sizes[i]) { return false; }
            continue;
        }
        if (size < variant->least[which] || size > variant->most[which] || (sizes[which] && sizes[which] != size)) {
            return false;
        }
        sizes[which] = size;
    }
    return true;
}
/* Returns whether inputs are of the kind for which the variant was compiled.  Sets `sizes` to their open sizes. */
static bool opdi_variant_fits(const opdi_variant *variant, const opd_value *inputs, int ninputs, int64_t sizes[2]) {
    sizes[0] = sizes[1] = 0;
    if (ninputs != variant->ninputs) { return false; }
    for (int i = 0, end = 0; i < ninputs; i++) {
        const opd_value *const is = &variant->inputs[i];
        if (inputs[i].tag != is->tag) { return false; }
        if (is->tag == OPD_TAG_TENSOR) {
            const opd_tensor *const tensor = inputs[i].u.t;
            const int open[2] = {variant->nopen ? variant->open[0][i] : -1,
                                 variant->nopen > 1 ? variant->open[1][i] : -1};
            const bool fits = open[0] >= 0 || open[1] >= 0
                ? opdi_port_fits_open(variant, &variant->ends[end], tensor, open, sizes)
                : opdi_port_fits(&variant->ends[end], tensor);
            end++;
            if (!fits) { return false; }
            if (variant->whole && tensor->data != tensor->storage->data) { return false; }
        } else if (is->tag == OPD_TAG_FLOAT ? memcmp(&inputs[i].u.d, &is->u.d, sizeof is->u.d) != 0
                   : is->tag != OPD_TAG_NONE && is->tag != OPD_TAG_DEFAULT && inputs[i].u.i != is->u.i) {
            return false;
        }
    }
    return true;
}

/* Returns a reason why compiled code cannot replace calls on this thread (a mode or transform is active), or NULL if it
   can. */
static const char *opdi_compiled_modes(const opdi_thread *thread) {
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
   writes the tensor. */
static const char *opdi_compiled_tensor(const opdi_thread *thread, const opd_tensor *tensor, bool written) {
    const unsigned unusual = OPDI_WRAPPED | OPDI_LAZY | OPDI_STORED | OPDI_BATCHED | OPDI_TRACED;
    const bool view = tensor->flags & OPDI_IS_VIEW;
    const bool grad = (tensor->flags & OPDI_REQUIRES_GRAD) ||
        (view && (opdi_view_record_of(tensor)->base->flags & OPDI_REQUIRES_GRAD));
    const bool usual = !(tensor->functionality & ~OPDI_TENSOR_KEYS) && !(tensor->flags & unusual);
    if (!usual) { return "a tensor is of another kind"; }
    if (opd_tensor_device(tensor).type != OPD_CPU) { return "a tensor is on another device"; }
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
static const char *opdi_variant_tensors(const opdi_thread *thread, const opdi_variant *variant, const opd_value *inputs,
                                        opd_tensor **all) {
    int count = 0;
    for (int i = 0; i < variant->ninputs; i++) {
        if (inputs[i].tag == OPD_TAG_TENSOR) { all[count++] = inputs[i].u.t; }
    }
    for (int i = 0; i < variant->nconstants; i++) { all[count++] = variant->constants[i]; }
    for (int i = 0; i < count; i++) {
        const char *const why = opdi_compiled_tensor(thread, all[i], variant->written[i]);
        if (why) { return why; }
        if (count - i <= variant->nconstants && (!opdi_port_fits(&variant->ends[i], all[i]) ||
                                                 (variant->whole && all[i]->data != all[i]->storage->data))) {
            return "a constant has another size";
        }
        for (int k = 0; k < count && variant->written[i]; k++) {
            if (k != i && opdi_tensors_overlap(all[i], all[k])) { return "a tensor that is written shares its memory"; }
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
        if (opdi_compiled_tensor(thread, tensor, false)) { return "a frozen constant requires grad or is unusual"; }
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
static int opdi_variant_call(const opdi_variant *variant, const opdi_c_model *model, const int64_t sizes[2],
                             void *const *inputs, void *const *outputs) {
    int (*one)(const opdi_c_model *, ptrdiff_t, void *const *, void *const *);
    int (*two)(const opdi_c_model *, ptrdiff_t, ptrdiff_t, void *const *, void *const *);
    if (!variant->nopen) { return variant->call(model, inputs, outputs); }
    memcpy(&one, &variant->call, sizeof one);
    memcpy(&two, &variant->call, sizeof two);
    return variant->nopen == 1 ? one(model, (ptrdiff_t)sizes[0], inputs, outputs)
        : two(model, (ptrdiff_t)sizes[0], (ptrdiff_t)sizes[1], inputs, outputs);
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
static int opdi_variant_run(opdi_variant *variant, const int64_t sizes[2], opd_tensor **all, opd_value *results) {
    opdi_c_model model = variant->model;
    const opdi_open_at at = {{sizes[0], sizes[1]}};
    const opdi_open_terms *shapes = variant->shapes;
    const size_t count = (size_t)(variant->nends + variant->noutputs + 1);
    void **const inputs = (void **)opdi_scope_alloc(count * sizeof *inputs);
    opd_tensor **const made = (opd_tensor **)opdi_scope_alloc((size_t)(variant->noutputs + 1) * sizeof *made);
    if (!inputs || !made) { return -1; }
    void **const outputs = inputs + variant->nends;
    for (int i = 0; i < variant->nends; i++) { inputs[i] = all[i]->data; }
    for (int i = 0; i < variant->noutputs; i++) {
        if (!(made[i] = opdi_variant_output(&variant->outputs[i], shapes, &at))) { return -1; }
        if (shapes) { shapes += 2 * variant->outputs[i].ndim; }
        outputs[i] = made[i]->data;
    }
    void *const arena = opdi_variant_arena_take(variant);
    if (!arena) { return -1; }
    model.arena = (unsigned char *)(((uintptr_t)arena + 63) & ~(uintptr_t)63);
    const int rc = opdi_variant_call(variant, &model, sizes, inputs, outputs);
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

OPDI_COLD_BEGIN
/* Frees a variant and unloads its code. */
static void opdi_variant_free(opdi_variant *variant) {
    if (!variant) { return; }
    if (variant->library) { opdi_dlclose(variant->library); }
    for (int i = 0; i < variant->nfrozen; i++) {
        if (variant->storages[i]) { opdi_storage_drop(variant->storages[i]); }
    }
    if (variant->fixed) { opdi_free(variant->fixed, (size_t)variant->fixed_bytes + 64); }
    if (variant->spare) { opdi_free(variant->spare, (size_t)variant->arena_bytes + 64); }
    opdi_arena_free(&variant->memory);
    opdi_free(variant, sizeof *variant);
}
static void *opdi_variant_alloc(opdi_variant *variant, int count, size_t size) {
    void *const memory = opdi_arena_alloc(&variant->memory, (size_t)(count + 1) * size);
    if (memory) { memset(memory, 0, (size_t)(count + 1) * size); }
    return memory;
}
/* Calls operator number `which`, which cannot be written in C; compiled code calls this function.  Returns 0, or 4 and
   sets an error. */
static int opdi_variant_extern(void *context, int which, const void *in, void *out) {
    const opdi_variant *const variant = (const opdi_variant *)context;
    return opdi_extern_run(variant->called[which], (const unsigned char *)in, (unsigned char *)out);
}
static int opdi_variant_kernel(void *context, int which, const void *left, const void *right, void *out) {
    return opdi_kernel_run(&((const opdi_variant *)context)->kernels[which], left, right, out);
}
/* Copies the kernels of a recording to a variant.  Returns 0, or -1 and sets an error. */
static int opdi_variant_kernels(opdi_variant *variant, const opdi_recording *recording) {
    const int count = variant->nkernels = recording->nkernels;
    variant->kernels = (opdi_nest_kernel *)opdi_variant_alloc(variant, count, sizeof *variant->kernels);
    variant->ways = (unsigned char *)opdi_variant_alloc(variant, count, 1);
    variant->times = (int64_t (*)[2])opdi_variant_alloc(variant, count, sizeof *variant->times);
    if (!variant->kernels || !variant->ways || !variant->times) { return -1; }
    for (const opdi_nest_kernel *kernel = recording->kernels; kernel; kernel = kernel->next) {
        variant->kernels[kernel->id] = *kernel;
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
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: a frozen constant is written", unit->what);
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
    for (const opdi_extern_call *called = recording->called; called && variant->called; called = called->next) {
        variant->draws = variant->draws || called->draws;
        variant->once = variant->once || strncmp(opd_op_name(called->op), "aten::", 6) != 0;
        if (!(variant->called[called->id] = opdi_extern_keep(&variant->memory, called))) { return -1; }
    }
    variant->model.call = opdi_variant_extern;
    variant->model.kernel = opdi_variant_kernel;
    variant->model.context = variant;
    return variant->called ? opdi_variant_kernels(variant, recording) : -1;
}
/* Compiles the C text `source` and loads it.  Returns 0, or -1 and sets an error. */
static int opdi_variant_load(opdi_variant *variant, const opd_compiled *compiled, const char *source) {
#if !defined(OPDI_COMPILES)
    (void)variant;
    (void)source;
    return opd_fail(OPD_ERROR_REGISTER, "%s: this program was built with OPD_NO_PLUGINS", compiled->what);
#else
    typedef int (*opdi_init)(opdi_c_model *model, const void *weights, void *fixed, void *arena);
    static const char *const flags[] = {"-O3 -march=native -fno-math-errno -fno-trapping-math -w", "-O2", NULL};
    char path[OPDI_PATH], name[64];
    int rc = -1;
    for (int i = 0; flags[i] && rc; i++) {
        if (i) { opd_error_clear(); }             /* other flags: the C compiler may not know the first flags */
        const char *const given = compiled->flags ? compiled->flags : flags[i];
        rc = opdi_build_text(compiled->what, compiled->name, source, given, path);
        if (compiled->flags) { break; }
    }
    if (rc || !(variant->library = opdi_dlopen(path))) { return -1; }
    (void)snprintf(name, sizeof name, "%s_init", compiled->name);
    void *const init = opdi_dlsym(variant->library, name);
    (void)snprintf(name, sizeof name, "%s_call", compiled->name);
    void *const call = opdi_dlsym(variant->library, name);
    if (!init || !call) { return opd_fail(OPD_ERROR_REGISTER, "%s: %s has no %s", compiled->what, path, name); }
    opdi_init start;
    memcpy(&start, &init, sizeof start);
    memcpy(&variant->call, &call, sizeof variant->call);
    if (!(variant->fixed = opdi_alloc((size_t)variant->fixed_bytes + 64)) ||
        !(variant->spare = opdi_alloc((size_t)variant->arena_bytes + 64))) { return -1; }
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
static int opdi_variant_ports(opdi_variant *variant, const opd_value *inputs) {
    int count = 0;
    variant->ends = (opdi_unit_port *)opdi_variant_alloc(variant, variant->ninputs, sizeof *variant->ends);
    for (int i = 0; i < variant->ninputs && variant->ends; i++) {
        if (inputs[i].tag != OPD_TAG_TENSOR) { continue; }
        opdi_port_keep(&variant->ends[count++], inputs[i].u.t);
    }
    return variant->ends ? 0 : -1;
}
/* Records a graph as a unit, and writes its C code to `text`.  Returns 0, or -1 and sets an error. */
static int opdi_compiled_text(const opd_compiled *compiled, opdi_unit *unit, const opd_value *inputs, int ninputs,
                              opdi_string *text) {
    const opdi_unit_source source = {compiled->what, compiled->graph, compiled->program, inputs, ninputs,
                                     &compiled->open};
    opdi_string header = {NULL, 0, 0, false};
    opdi_unit_job job = opdi_unit_job_begin(unit);
    unit->here = unit->recording.here = unit->recording.calls = unit->recording.draws = true;
    unit->frozen = compiled->frozen;
    const int rc = opdi_compiled_kinds(compiled, inputs, ninputs) || opdi_unit_record(unit, &source, inputs) ||
        opdi_unit_fuse(unit) || opdi_unit_text(unit, text, &header) ? -1 : 0;
    opdi_unit_job_end(&job);
    opdi_string_free(&header);
    return rc;
}
/* Records a graph as a unit with open sizes, and writes its C code to `text`.  Returns 0, or -1 and sets an error. */
static int opdi_compiled_text_open(const opd_compiled *compiled, opdi_open *open, const opd_value *inputs, int ninputs,
                                   opdi_string *text) {
    const opdi_unit_source source = {compiled->what, compiled->graph, compiled->program, inputs, ninputs,
                                     &compiled->open};
    opdi_string header = {NULL, 0, 0, false};
    opdi_unit_job job = opdi_unit_job_begin(&open->units[0]);
    open->here = true;
    open->frozen = compiled->frozen;
    open->source = &source;
    const int rc = opdi_compiled_kinds(compiled, inputs, ninputs) || opdi_open_find(open, text, &header) ? -1 : 0;
    opdi_unit_job_end(&job);
    opdi_string_free(&header);
    return rc;
}
/* Stores the properties of a unit in a variant; compiles and loads the C text of the unit.  Returns 0, or -1 and sets
   an error. */
static int opdi_variant_made(opdi_variant *variant, const opd_compiled *compiled, opdi_unit *unit,
                             const opdi_string *text) {
    unit->nresults = compiled->graph ? compiled->graph->noutputs : 0;
#if !defined(OPD_NO_PROGRAMS)
    if (compiled->program) { unit->nresults = compiled->program->noutputs; }
#endif
    return opdi_variant_keep(variant, unit) || opdi_variant_load(variant, compiled, text->data) ? -1 : 0;
}
/* Makes the code of a variant with open sizes: records, writes, compiles and loads it.  Returns 0, or -1 and sets an
   error. */
static int opdi_variant_make_open(opdi_variant *variant, const opd_compiled *compiled, const opd_value *inputs,
                                  int ninputs) {
    opdi_string text = {NULL, 0, 0, false};
    opdi_open *const open = (opdi_open *)opdi_alloc(sizeof *open);
    int count = 0;
    if (!open) { return -1; }
    memset(open, 0, sizeof *open);
    int rc = opdi_unit_begin(&open->units[0], compiled->what, &compiled->open) ||
        opdi_compiled_text_open(compiled, open, inputs, ninputs, &text) ||
        opdi_variant_made(variant, compiled, &open->units[0], &text) ? -1 : 0;
    const int dims = rc ? 0 : opdi_open_dims(&open->units[0]);
    opdi_open_terms *const shapes = rc ? NULL
        : (opdi_open_terms *)opdi_variant_alloc(variant, 2 * dims, sizeof *shapes);
    if (shapes) {
        memcpy(shapes, open->units[0].shapes, 2 * (size_t)dims * sizeof *shapes);
        variant->shapes = shapes;
        variant->nopen = open->n;
        variant->open[0] = (int *)(uintptr_t)compiled->open.open;
        variant->open[1] = (int *)(uintptr_t)compiled->open.open_2;
        for (int i = 0; i < 2; i++) {
            variant->least[i] = open->least.sizes[i];
            variant->most[i] = open->most.sizes[i];
        }
        for (int i = 0; i < ninputs; i++) {
            if (inputs[i].tag == OPD_TAG_TENSOR) { opdi_port_keep(&variant->ends[count++], inputs[i].u.t); }
        }
    } else { rc = -1; }
    for (int i = 0; i < 2; i++) { opdi_unit_free(&open->units[i]); }
    opdi_arena_free(&open->arena);
    opdi_string_free(&text);
    opdi_free(open, sizeof *open);
    return rc;
}
/* Makes the code of a variant: records, writes, compiles and loads it.  Returns 0, or -1 and sets an error. */
static int opdi_variant_make(opdi_variant *variant, const opd_compiled *compiled, const opd_value *inputs,
                             int ninputs) {
    opdi_string text = {NULL, 0, 0, false};
    opdi_unit unit;
    const int rc = opdi_unit_begin(&unit, compiled->what, &compiled->open) ||
        opdi_compiled_text(compiled, &unit, inputs, ninputs, &text) ||
        opdi_variant_made(variant, compiled, &unit, &text) ? -1 : 0;
    opdi_unit_free(&unit);
    opdi_string_free(&text);
    return rc;
}
static opdi_variant *opdi_variant_new(const opd_value *inputs, int ninputs) {
    opdi_variant *const variant = (opdi_variant *)opdi_alloc(sizeof *variant);
    if (!variant) { return NULL; }
    memset(variant, 0, sizeof *variant);
    variant->ninputs = ninputs;
    variant->inputs = (opd_value *)opdi_variant_alloc(variant, ninputs, sizeof *variant->inputs);
    for (int i = 0; i < ninputs && variant->inputs; i++) { variant->inputs[i] = inputs[i]; }
    return variant;
}
/* Returns whether the inputs have the dims that have open sizes, and their sizes are in the requested ranges. */
static bool opdi_compiled_opens(const opd_compiled *compiled, const opd_value *inputs, int ninputs) {
    const opd_c_options *const options = &compiled->open;
    if (!options->open || ninputs != compiled->ninputs) { return false; }
    for (int i = 0; i < ninputs; i++) {
        for (int k = 0; k < (options->open_2 ? 2 : 1); k++) {
            const int dim = k ? options->open_2[i] : options->open[i];
            const opd_tensor *const tensor = inputs[i].tag == OPD_TAG_TENSOR ? inputs[i].u.t : NULL;
            const int64_t least = k ? options->least_2 : options->least, most = k ? options->most_2 : options->most;
            if (dim >= 0 && (!tensor || dim >= tensor->ndim || !opd_is_contiguous(tensor) ||
                             tensor->dims[dim] < least || tensor->dims[dim] > most)) { return false; }
        }
    }
    return true;
}
/* Makes a variant with open sizes for these inputs and returns it.  If that is impossible, returns NULL; unless memory
   ran out, it also warns, and does not try open sizes again later. */
static opdi_variant *opdi_compiled_add_open(opd_compiled *compiled, const opd_value *inputs, int ninputs) {
    if (!opdi_compiled_opens(compiled, inputs, ninputs)) { return NULL; }
    opdi_variant *const variant = opdi_variant_new(inputs, ninputs);
    if (variant && variant->inputs && opdi_variant_make_open(variant, compiled, inputs, ninputs) == 0) {
        return variant;
    }
    if (opd_error_code() != OPD_ERROR_MEMORY) {
        opd_warn("%s: '%s' is compiled for each size: %s", compiled->what, compiled->name, opd_error_message());
        compiled->open.open = compiled->open.open_2 = NULL;
    }
    opd_error_clear();
    opdi_variant_free(variant);
    return NULL;
}
//== choosing the faster way ===========================================================================================

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
/* Runs the code of a variant once.  Returns the time in nanoseconds, or -1 if it cannot run. */
static int64_t opdi_variant_timed(opdi_variant *variant, const opd_value *inputs) {
    const int64_t sizes[2] = {0, 0};
    opd_scope scope = opd_scope_open();
    opd_tensor **const all = (opd_tensor **)opdi_scope_alloc((size_t)(variant->nends + 1) * sizeof *all);
    opd_value *const results = (opd_value *)opdi_scope_alloc((size_t)(variant->nresults + 1) * sizeof *results);
    int64_t time = -1;
    if (all && results && !opdi_variant_tensors(opdi_self(), variant, inputs, all)) {
        const int64_t start = opdi_choice_clock();
        if (opdi_variant_run(variant, sizes, all, results) == 0) { time = opdi_choice_clock() - start; }
    }
    opd_scope_close(&scope);
    if (!opd_ok()) { opd_error_clear(); }
    return time;
}
enum { OPDI_CHOICE_ROUNDS = 4 };
/* Chooses for each nest that a kernel of the library can compute whether the kernel or the loops compute it.  Runs the
   code several times with each, and keeps the way whose shortest time is shorter.  If the code cannot run twice with
   the same inputs, the kernels compute all these nests. */
static void opdi_variant_choose(opdi_variant *variant, const opd_value *inputs) {
    const bool once = variant->once || variant->writes || variant->draws;
    if (!variant->nkernels) { return; }
    variant->model.clock = opdi_variant_clock;
    for (int round = 0; round < 2 * OPDI_CHOICE_ROUNDS && !once; round++) {
        memset(variant->ways, round % 2, (size_t)variant->nkernels);
        if (opdi_variant_timed(variant, inputs) < 0) { break; }
    }
    variant->model.clock = NULL;
    for (int i = 0; i < variant->nkernels; i++) {
        const int64_t *const times = variant->times[i];
        variant->ways[i] = !times[0] || !times[1] || times[1] < times[0];
    }
}
/* Runs the graph or program uncompiled.  Returns the number of results, or -1 and sets an error. */
static int opdi_compiled_uncompiled(const opd_compiled *compiled, const opd_value *inputs, int ninputs,
                                    opd_value *outputs, int cap) {
#if !defined(OPD_NO_PROGRAMS)
    if (!compiled->graph) { return opd_program_run(compiled->program, inputs, ninputs, outputs, cap); }
#endif
    return opd_graph_run_values(compiled->graph, inputs, ninputs, outputs, cap);
}
/* Runs the graph or program uncompiled.  Returns the time in nanoseconds, or -1 if the run fails. */
static int64_t opdi_compiled_timed(const opd_compiled *compiled, const opd_value *inputs, int ninputs, int nresults) {
    opd_scope scope = opd_scope_open();
    opd_value *const results = (opd_value *)opdi_scope_alloc((size_t)(nresults + 1) * sizeof *results);
    const int64_t start = opdi_choice_clock();
    const int rc = results ? opdi_compiled_uncompiled(compiled, inputs, ninputs, results, nresults) : -1;
    const int64_t time = rc < 0 ? -1 : opdi_choice_clock() - start;
    opd_scope_close(&scope);
    if (!opd_ok()) { opd_error_clear(); }
    return time;
}
/* Code that takes less than 200 microseconds is not compared with uncompiled runs: a disturbance could decide. */
enum { OPDI_GUARD_LEAST = 200000, OPDI_GUARD_ROUNDS = 5 };
/* If uncompiled runs are faster than the code of a variant, lets later runs stay uncompiled.  OPD_COMPILED_ALWAYS=1 in
   the environment turns this off. */
static void opdi_variant_guard(opdi_variant *variant, const opd_compiled *compiled, const opd_value *inputs) {
    int64_t here = INT64_MAX, plain = INT64_MAX;
    const char *const always = getenv("OPD_COMPILED_ALWAYS");
    if (always && strcmp(always, "1") == 0) { return; }
    if (variant->once || variant->writes || variant->draws || variant->nopen) { return; }
    for (int round = 0; round < OPDI_GUARD_ROUNDS; round++) {
        const int64_t time = opdi_variant_timed(variant, inputs);
        if (time < OPDI_GUARD_LEAST) { return; }
        const int64_t other = opdi_compiled_timed(compiled, inputs, variant->ninputs, variant->nresults);
        if (other < 0) { return; }
        here = OPDI_MIN(here, time);
        plain = OPDI_MIN(plain, other);
    }
    if (plain < here) { variant->why = "uncompiled runs are faster"; }
}
/* Adds a variant for the kind of these inputs, which an uncompiled run has shown to be valid.  If the kind cannot be
   compiled, adds a variant without code, so that later runs with such inputs stay uncompiled.  The caller holds the
   lock. */
static void opdi_compiled_add(opd_compiled *compiled, const opd_value *inputs, int ninputs) {
    opdi_variant *variant = opdi_compiled_add_open(compiled, inputs, ninputs);
    const bool made = variant != NULL;
    char why[700];
    variant = made ? variant : opdi_variant_new(inputs, ninputs);
    if (!variant) {
        opd_error_clear();
        return;
    }
    if (!made && (!variant->inputs || opdi_variant_make(variant, compiled, inputs, ninputs))) {
        const bool memory = opd_error_code() == OPD_ERROR_MEMORY;
        (void)snprintf(why, sizeof why, "%s", opd_error_message());
        opd_error_clear();
        variant->why = memory || !variant->inputs ? NULL : opdi_arena_copy(&variant->memory, why, strlen(why));
        if (!variant->why || opdi_variant_ports(variant, inputs)) {      /* memory ran out: a later run tries to compile
                                                                            again */
            opd_error_clear();
            opdi_variant_free(variant);
            return;
        }
        if (!compiled->said) { opd_warn("%s: '%s' runs uncompiled: %s", compiled->what, compiled->name, why); }
        compiled->said = true;
    }
    if (!variant->why) {
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
        int64_t sizes[2];
        while (variant && !opdi_variant_fits(variant, inputs, ninputs, sizes)) { variant = variant->next; }
        if (!variant) { opdi_compiled_add(compiled, inputs, ninputs); }
    }
    OPDI_STORE(&compiled->reason, why ? why : compiled->count < compiled->kinds ? "inputs of this kind are new"
               : "there are more kinds of inputs than the limit for compiling (opd_compile_options.kinds)");
    opdi_unlock(&compiled->lock);
    return rc;
}
/* Stores the options that tell which dims have open sizes.  Returns 0, or -1 and sets an error. */
static int opdi_compiled_open(opd_compiled *compiled, const opd_compile_options *options) {
    const int n = compiled->ninputs;
    compiled->open.name = compiled->name;
    if (!options || !options->open) { return 0; }
    if (!(compiled->dims = (int *)opdi_alloc((size_t)(2 * n + 1) * sizeof *compiled->dims))) { return -1; }
    memcpy(compiled->dims, options->open, (size_t)n * sizeof *compiled->dims);
    compiled->open.open = compiled->dims;
    compiled->open.least = options->least;
    compiled->open.most = options->most;
    if (!options->open_2) { return 0; }
    memcpy(compiled->dims + n, options->open_2, (size_t)n * sizeof *compiled->dims);
    compiled->open.open_2 = compiled->dims + n;
    compiled->open.least_2 = options->least_2;
    compiled->open.most_2 = options->most_2;
    return 0;
}
static opd_compiled *opdi_compiled_new(const char *what, const opd_compile_options *options, int ninputs) {
    opd_compiled *const compiled = (opd_compiled *)opdi_alloc(sizeof *compiled);
    static const opdi_mutex fresh = OPDI_MUTEX_INIT;
    const char *const flags = options ? options->flags : NULL;
    opd_c_options name;
    opdi_unit unit;
    if (!compiled) { return NULL; }
    memset(compiled, 0, sizeof *compiled);
    memset(&name, 0, sizeof name);
    name.name = options ? options->name : NULL;
    compiled->lock = fresh;
    compiled->what = what;
    compiled->frozen = options && options->frozen;
    compiled->kinds = options && options->kinds > 0 ? options->kinds : 8;
    compiled->reason = "it has not run";
    int rc = opdi_unit_begin(&unit, what, &name);
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
opd_compiled *opd_graph_compile(const opd_graph *graph, const opd_compile_options *options) {
    if (!opd_ok()) { return NULL; }
    if (!graph) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_compile: the graph is NULL");
        return NULL;
    }
    opd_compiled *const compiled = opdi_compiled_new("opd_graph_compile", options, graph->ninputs);
    if (compiled) { compiled->graph = graph; }
    return compiled;
}
opd_compiled *opd_program_compile(const opd_program *program, const opd_compile_options *options) {
#if defined(OPD_NO_PROGRAMS)
    (void)program;
    (void)options;
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_program_compile is left out: OPD_NO_PROGRAMS was defined");
    return NULL;
#else
    if (!opd_ok()) { return NULL; }
    if (!program) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_program_compile: the program is NULL");
        return NULL;
    }
    opd_compiled *const compiled = opdi_compiled_new("opd_program_compile", options, program->ninputs);
    if (compiled) { compiled->program = program; }
    return compiled;
#endif
}
void opd_compiled_free(opd_compiled *compiled) {
    if (!compiled) { return; }
    for (opdi_variant *variant = compiled->variants, *next; variant; variant = next) {
        next = variant->next;
        opdi_variant_free(variant);
    }
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
            const char *const why = value->u.t ? opdi_compiled_tensor(thread, value->u.t, false) : "an input is NULL";
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
        why = opdi_compiled_tensor(thread, opd_module_at(compiled->program->module, i), false);
    }
#else
    (void)thread;
    (void)compiled;
#endif
    return why;
}
int opd_compiled_run(opd_compiled *compiled, const opd_value *inputs, int ninputs, opd_value *outputs, int cap) {
    opdi_thread *const thread = opdi_self();
    opdi_variant *variant = NULL;
    int64_t sizes[2] = {0, 0};
    if (!opd_ok()) { return -1; }
    if (!compiled) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_compiled_run: the compiled graph is NULL"); }
    const char *why = opdi_compiled_modes(thread);
    if (!why) { why = opdi_compiled_inputs(thread, inputs, ninputs); }
    if (!why) {
        variant = OPDI_ACQUIRE(&compiled->variants);
        while (variant && !opdi_variant_fits(variant, inputs, ninputs, sizes)) { variant = variant->next; }
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
    const int rc = !all ? -1 : why ? 1 : opdi_variant_run(variant, sizes, all, outputs);
    bool held = rc == 0;
    for (int i = 0; i < variant->nresults && held; i++) { held = opdi_value_hold(&outputs[i]) == 0; }
    opd_span_close(span);
    opd_scope_close(&scope);
    if (rc > 0) {
        return opdi_compiled_plain(compiled, inputs, ninputs, outputs, cap, why ? why : "compiled code found an error");
    }
    for (int i = 0; i < variant->nresults && held; i++) { outputs[i] = opdi_value_own(outputs[i]); }
    OPDI_STORE(&compiled->reason, NULL);
    return held && opd_ok() ? variant->nresults : -1;
}
int opd_compiled_function(void *compiled, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opd_value values[OPD_MAX_ARGS], results[OPD_TRANSFORM_OUTPUTS];
    if (ninputs < 0 || ninputs > OPD_MAX_ARGS || (ninputs && !inputs) || !outputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_compiled_function: there must be at most %d inputs, and the arrays "
                        "must not be NULL", OPD_MAX_ARGS);
    }
    for (int i = 0; i < ninputs; i++) { values[i] = opd_value_tensor(inputs[i]); }
    const int count = opd_compiled_run((opd_compiled *)compiled, values, ninputs, results, OPD_TRANSFORM_OUTPUTS);
    for (int i = 0; i < count && i < OPD_TRANSFORM_OUTPUTS; i++) {
        outputs[i] = results[i].tag == OPD_TAG_TENSOR ? results[i].u.t : NULL;
    }
    return count;
}
