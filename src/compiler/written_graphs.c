#include "compiler.h"

//== writing graphs and programs as C files ============================================================================

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
OPDI_INTERNAL int opdi_unit_begin(opdi_unit *unit, const char *what, const char *name) {
    name = name ? name : "model";
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
    OPDI_PUBLISH(&opdi_control_lowered, &opdi_inner_lower);
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
    const bool any = source->sizes != NULL;
    opdi_open *const open = any ? (opdi_open *)opdi_alloc(sizeof *open) : NULL;
    opdi_unit only, *const unit = open ? &open->units[0] : &only;
    int rc = -1;
    if (any && !open) { return -1; }
    if (open) { memset(open, 0, sizeof *open); }
    if (opdi_unit_begin(unit, source->what, source->name) == 0) {
        opdi_unit_job job = opdi_unit_job_begin(unit);
        if (open) {
            open->source = source;
            opdi_string text = {NULL, 0, 0, false}, header = {NULL, 0, 0, false};
            rc = opdi_open_find(open, &text, &header) || opdi_unit_files(unit, folder, &text, &header) ? -1 : 0;
            opdi_string_free(&text);
            opdi_string_free(&header);
        } else {
            unit->recording.calls = source->calls;
            unit->recording.controls = true;
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

/* Returns what is to be compiled, with the open sizes that the options name, which are stored in *sizes. */
static opdi_unit_source opdi_unit_source_of(const char *what, const opd_value *inputs, int ninputs,
                                            const opd_c_options *options, opdi_open_sizes *sizes) {
    opdi_unit_source source;
    memset(&source, 0, sizeof source);
    source.what = what;
    source.inputs = inputs;
    source.ninputs = ninputs;
    if (!options) { return source; }
    source.name = options->name;
    source.calls = options->calls;
    source.sizes = opdi_open_of_options(sizes, options->open, options->open_2) ? sizes : NULL;
    sizes->least[0] = options->least;
    sizes->most[0] = options->most;
    sizes->least[1] = options->least_2;
    sizes->most[1] = options->most_2;
    return source;
}
/* Writes a graph as C.  If `open` is true, the open sizes of the graph become arguments of the functions.  Returns 0,
   or -1 and sets an error. */
static int opdi_graph_write_c(const char *what, const opd_graph *graph, opd_tensor *const *inputs, int ninputs,
                              const char *folder, const opd_c_options *options, bool open) {
    opdi_open_sizes sizes;
    if (!opd_ok()) { return -1; }
    if (!graph || !folder || ninputs != graph->ninputs || (ninputs && !inputs)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: a graph, a folder and an example of each of its inputs are needed",
                        what);
    }
    if (opdi_any_dead(inputs, ninputs, what)) { return -1; }
    const size_t size = (size_t)(ninputs + 1) * sizeof(opd_value);
    opd_value *const values = (opd_value *)opdi_alloc(size);
    if (!values) { return -1; }
    for (int i = 0; i < ninputs; i++) { values[i] = opd_value_tensor(inputs[i]); }
    opdi_unit_source source = opdi_unit_source_of(what, values, ninputs, options, &sizes);
    source.graph = graph;
    if (open) { source.sizes = &sizes; }
    const int rc = open && (source.calls || !opdi_open_of_graph(graph, &sizes))
        ? opd_fail(OPD_ERROR_ARGUMENT, source.calls ? "%s: with options->calls, no size can be open"
                   : "%s: the graph must have one to four open sizes, each with several values and an upper bound, "
                   "which follow from the sizes of its inputs", what) : opdi_unit_written(&source, folder);
    opdi_free(values, size);
    return rc;
}
int opd_graph_write_c(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, const char *folder,
                      const opd_c_options *options) {
    return opdi_graph_write_c("opd_graph_write_c", graph, inputs, ninputs, folder, options, false);
}
int opd_graph_write_c_open(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, const char *folder,
                           const opd_c_options *options) {
    return opdi_graph_write_c("opd_graph_write_c_open", graph, inputs, ninputs, folder, options, true);
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
    opdi_open_sizes sizes;
    opdi_unit_source source = opdi_unit_source_of("opd_program_write_c", inputs, ninputs, options, &sizes);
    source.program = program;
    return opdi_unit_written(&source, folder);
#endif
}
