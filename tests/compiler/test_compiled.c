/* Graphs written as C: a graph of every operator, with the sample arguments of its descriptor, and the graphs of
   exported programs.  $CC (else cc) compiles them.  They run with other numbers than in the recording, and must give
   the same results as the graphs. */
#define _GNU_SOURCE 1
#include "../cases.h"
#include "../program_files.h"
#include <dlfcn.h>
#include <unistd.h>

#define MOST_UNITS 8000
/* A C function, its arguments, and its expected results. */
typedef struct unit {
    char name[24], what[200];
    opd_tensor *inputs[OPD_MAX_ARGS], *want[MOST_RESULTS];
    opd_tensor *after[OPD_MAX_ARGS];              /* what a run leaves in the inputs; NULL: that is not looked at */
    int ninputs, nwant, code;                     /* code: what the function returns */
    double tolerance;
    bool state;                                   /* a run changes what the next one gives */
    long open, least, most;                       /* the open size of this run, and its range; 0: none is open */
    long open_2, least_2, most_2;                 /* the same of a second one */
} unit;
static unit units[MOST_UNITS];
static int nunits;
static char folder[64];

typedef struct model { const unsigned char *weights; unsigned char *fixed, *arena; } model;
/* A function in the table of all functions. */
typedef struct entry {
    int (*init)(void *model, const void *weights, void *fixed, void *arena);
    int (*call)(const void *model, void *const *inputs, void *const *outputs);
    long long weights, fixed, arena;
} entry;

/* Under the sanitizers so are the units that are compiled with these flags: what is out of bounds in them shows. */
#if !defined(CHECK_SANITIZED) || defined(CHECK_THREADS_SANITIZED)
#define UNIT_COMPILER "${CC:-cc}"
#define UNITS_CHECKED 0
#define CHECKED "-O1"
#define CHECKED_HERE "-O1 -march=native"
#else
#define UNITS_CHECKED 1
#define CHECKED "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
#define CHECKED_HERE CHECKED " -march=native"
#if defined(__clang__)
#define UNIT_COMPILER "clang"
#else
#define UNIT_COMPILER "gcc"
#endif
#endif
static bool have_compiler(void) {
    check_quick_compiler();
    return system("${CC:-cc} -v >/dev/null 2>&1") == 0;
}
static bool knows_this_machine(void) {
    return system("${CC:-cc} -march=native -E -x c /dev/null >/dev/null 2>&1") == 0;
}
/* Returns a compiler that takes a tenth of the time, for code that another one has compiled in another dtype. */
static const char *quick_compiler(void) {
    return system("tcc -v >/dev/null 2>&1 && [ \"${CC:-cc}\" != tcc ]") == 0 ? "tcc" : UNIT_COMPILER;
}
static const char *new_folder(void) {
    (void)snprintf(folder, sizeof folder, "/tmp/opd_compiled.XXXXXX");
    return mkdtemp(folder);
}
static void remove_folder(void) {
    char command[120];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK_INT(system(command), 0);
}
static void forget_units(void) {
    int i, k;
    for (i = 0; i < nunits; i++) {
        for (k = 0; k < units[i].ninputs; k++) {
            opd_release(units[i].inputs[k]);
            opd_release(units[i].after[k]);
        }
        for (k = 0; k < units[i].nwant; k++) { opd_release(units[i].want[k]); }
    }
    nunits = 0;
}
/* Returns memory that is aligned to 64 bytes, inside of *block. */
static unsigned char *aligned(long long bytes, void **block) {
    *block = calloc((size_t)bytes + 128, 1);
    return (unsigned char *)(((uintptr_t)*block + 63) / 64 * 64);
}
/* Compiles all units into one library with a table.  Returns the table, or NULL. */
static const entry *compile_units(void **library, const char *compiler, const char *flags) {
    char path[120], command[800];
    FILE *file;
    int i;
    (void)snprintf(path, sizeof path, "%s/table.c", folder);
    if (!(file = fopen(path, "w"))) { return NULL; }
    for (i = 0; i < nunits; i++) { fprintf(file, "#include \"%s.h\"\n", units[i].name); }
    fprintf(file, "typedef struct entry {\n    int (*init)(void *, const void *, void *, void *);\n"
            "    int (*call)(const void *, void *const *, void *const *);\n    long long weights, fixed, arena;\n} entry;\n"
            "const entry table[] = {\n");
    for (i = 0; i < nunits; i++) {
        const char *const n = units[i].name;
        fprintf(file, "    {(int (*)(void *, const void *, void *, void *))%s_init,\n"
                "     (int (*)(const void *, void *const *, void *const *))%s_call,\n"
                "     %s_WEIGHTS_BYTES, %s_FIXED_BYTES, %s_ARENA_BYTES},\n", n, n, n, n, n);
    }
    fprintf(file, "};\n");
    if (fclose(file)) { return NULL; }
    (void)snprintf(command, sizeof command, "cd '%s' && ls | grep '[.]c$' | xargs -n 50 %s %s -fPIC -w -c && "
                   "ls | grep '[.]o$' > objects && " UNIT_COMPILER " -shared %s -o all.so @objects -lm", folder, compiler, flags,
                   strcmp(compiler, "tcc") ? "" : "-Wl,-z,noexecstack");          /* of which its objects say nothing */
    CHECK_INT(system(command), 0);
    (void)snprintf(path, sizeof path, "%s/all.so", folder);
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library) { printf("%s\n", dlerror()); }
    CHECK(*library != NULL);
    return *library ? (const entry *)dlsym(*library, "table") : NULL;
}
static void read_weights(const unit *u, unsigned char *weights, long long bytes) {
    char path[120];
    FILE *file;
    (void)snprintf(path, sizeof path, "%s/%s.weights", folder, u->name);
    file = fopen(path, "rb");
    CHECK(file != NULL && fread(weights, 1, (size_t)bytes, file) <= (size_t)bytes);
    if (file) { (void)fclose(file); }
}
/* Checks that the differences are small relative to the numbers. */
static void close_values(opd_tensor *got, opd_tensor *want, double tolerance, const char *text) {
    double most = 0, far = 0;
    int64_t i;
    opd_tensor *const a = opd_to_dtype(got, OPD_FLOAT64), *const b = opd_to_dtype(want, OPD_FLOAT64);
    opd_tensor *const x = opd_contiguous(a), *const y = opd_contiguous(b);
    CHECK_OR_RETURN(x != NULL && y != NULL);
    for (i = 0; i < opd_numel(y); i++) {
        const double p = opd_data_f64(x)[i], q = opd_data_f64(y)[i];
        if (p == q || (p != p && q != q)) { continue; }
        if (fabs(q) < 1e300) { most = fmax(most, fabs(q)); }
        far = fabs(p - q) >= 0 ? fmax(far, fabs(p - q)) : (double)INFINITY;
    }
    if (opd_dtype(want) == OPD_FLOAT32 && tolerance < 1e-6) { tolerance = 1e-6; }
    if (!(far <= tolerance * fmax(most, 1))) { printf("%s: %g of %g\n", text, far, most); }
    CHECK(far <= tolerance * fmax(most, 1));
}
/* Calls a unit's function with an open size, or without one. */
static int call_unit(const unit *u, const entry *e, const model *m, long size, long size_2, void *const *in,
                     void *const *out) {
    typedef int (*open_call)(const void *model, ptrdiff_t open_size, void *const *inputs, void *const *outputs);
    typedef int (*both_call)(const void *model, ptrdiff_t open_size, ptrdiff_t size_2, void *const *inputs,
                             void *const *outputs);
    if (u->open_2) { return ((both_call)(void (*)(void))e->call)(m, size, size_2, in, out); }
    return u->open ? ((open_call)(void (*)(void))e->call)(m, size, in, out) : e->call(m, in, out);
}
static void run_unit(const unit *u, const entry *e) {
    void *blocks[3], *in[OPD_MAX_ARGS], *out[MOST_RESULTS];
    opd_tensor *got[MOST_RESULTS], *before[OPD_MAX_ARGS];
    model m;
    int i;
    bool again = true;
    OPD_SCOPED;
    unsigned char *const weights = aligned(e->weights, &blocks[0]);
    unsigned char *const fixed = aligned(e->fixed, &blocks[1]), *const arena = aligned(e->arena, &blocks[2]);
    read_weights(u, weights, e->weights);
    for (i = 0; i < u->ninputs; i++) { in[i] = opd_data(u->inputs[i]); }
    for (i = 0; i < u->nwant; i++) {
        got[i] = opd_empty(opd_ints_of(opd_sizes(u->want[i]), opd_ndim(u->want[i])), opd_dtype(u->want[i]));
        out[i] = opd_data(got[i]);
    }
    CHECK_INT(e->init(&m, weights, fixed, arena), 0);
    for (i = 0; i < u->ninputs; i++) { before[i] = opd_clone(u->inputs[i]); }
    memset(arena, 0xA5, (size_t)e->arena + 64);   /* detects reads of unwritten memory, and writes past the end */
    CHECK_INT(call_unit(u, e, &m, u->open, u->open_2, in, out), u->code);
    for (i = 0; i < 64; i++) { CHECK_INT(arena[e->arena + i], 0xA5); }
    if (u->open) {
        CHECK_INT(call_unit(u, e, &m, u->least - 1, u->open_2, in, out), 3);
        CHECK_INT(call_unit(u, e, &m, u->most + 1, u->open_2, in, out), 3);
    }
    if (u->open_2) {
        CHECK_INT(call_unit(u, e, &m, u->open, u->least_2 - 1, in, out), 3);
        CHECK_INT(call_unit(u, e, &m, u->open, u->most_2 + 1, in, out), 3);
    }
    for (i = 0; i < u->ninputs; i++) {
        again = again && opd_equal(before[i], u->inputs[i]);
        if (u->after[i]) { close_values(u->inputs[i], u->after[i], u->tolerance, u->what); }
    }
    if (again && !u->state) { CHECK_INT(call_unit(u, e, &m, u->open, u->open_2, in, out), u->code); }  /* nothing is left of the run before */
    for (i = 0; i < u->nwant && !u->code; i++) { close_values(got[i], u->want[i], u->tolerance, u->what); }
    for (i = 0; i < 3; i++) { free(blocks[i]); }
}
static void run_units(const char *compiler, const char *flags) {
    void *library = NULL;
    const entry *const table = nunits ? compile_units(&library, compiler, flags) : NULL;
    int i;
    for (i = 0; table && i < nunits; i++) { run_unit(&units[i], &table[i]); }
    if (library) { (void)dlclose(library); }
    forget_units();
}

//-- operators ----------------------------------------------------------------------------------------------------------

static bool read_case(op_case *c, const opd_op *op, const char *text, opd_scalar_type dtype, int first_seed) {
    memset(c, 0, sizeof *c);
    c->op = op;
    c->dtype = dtype;
    c->smooth = true;
    c->first_seed = first_seed;
    return case_read_next(c, &text);
}
static int case_inputs(const op_case *c, opd_tensor **in) {
    int i, n = 0;
    for (i = 0; i < c->nargs; i++) { if (c->args[i].tag == OPD_TAG_TENSOR) { in[n++] = c->args[i].u.t; } }
    return n;
}
/* Returns 1 if the case was written as C, 0 if it cannot be, -1 if there is no graph. */
static int add_case(const opd_op *op, const char *text, opd_scalar_type dtype) {
    static op_case c, other;
    opd_tensor *in[OPD_MAX_ARGS], *others[OPD_MAX_ARGS], *want[MOST_RESULTS];
    unit *const u = &units[nunits];
    opd_c_options o;
    opd_graph *g;
    int i, n, rc;
    OPD_SCOPED;
    if (nunits == MOST_UNITS || !read_case(&c, op, text, dtype, 0) || !read_case(&other, op, text, dtype, 40)) {
        opd_error_clear();
        return -1;
    }
    for (i = 0; i < c.nargs; i++) { if (c.args[i].tag == OPD_TAG_TENSORS) { (void)read_case(&other, op, text, dtype, 0); } }
    n = case_inputs(&c, in);
    (void)case_inputs(&other, others);
    g = opd_graph_trace(case_call, &c, in, n, NULL);
    memset(u, 0, sizeof *u);
    for (i = 0; g && i < n; i++) { u->inputs[i] = opd_clone(others[i]); }       /* before a run writes into it */
    u->nwant = g ? opd_graph_run(g, others, n, want, MOST_RESULTS) : -1;
    if (!opd_ok() || u->nwant < 0) {
        opd_error_clear();
        opd_graph_free(g);
        return -1;
    }
    memset(&o, 0, sizeof o);
    (void)snprintf(u->name, sizeof u->name, "u%d", nunits);
    o.name = u->name;
    rc = opd_graph_write_c(g, u->inputs, n, folder, &o);
    opd_graph_free(g);
    if (rc) {
        if (getenv("OPD_VERBOSE")) { printf("%s: %s\n", what, opd_error_message()); }
        CHECK(strlen(opd_error_message()) > 10);
        opd_error_clear();
        return 0;
    }
    (void)snprintf(u->what, sizeof u->what, "%s", what);
    u->ninputs = n;
    u->tolerance = dtype == OPD_FLOAT64 ? 1e-9 : dtype == OPD_BFLOAT16 ? 2e-2 : dtype == OPD_FLOAT16 ? 2e-3 : 2e-5;
    for (i = 0; i < n; i++) { (void)opd_keep(u->inputs[i]); }
    for (i = 0; i < u->nwant; i++) { want[i] = opd_keep(opd_clone(want[i])); u->want[i] = want[i]; }
    nunits++;
    return 1;
}
/* Whose cases are no inputs of the operator, where any result is as good: what is searched is not sorted, and what is
   said to be a result is none. */
static bool is_unfit(const opd_op *op) {
    const char *const name = opd_op_name(op);
    return strstr(name, "::searchsorted") || strstr(name, "::bucketize") || strcmp(name, "aten::cumprod_backward") == 0;
}
/* Adds the cases of every second operator (half is 0 or 1), or of all (half is -1).  At least `least`
   of them must be written as C. */
static void add_operators(int (*add)(const opd_op *, const char *, opd_scalar_type), opd_scalar_type dtype, int half,
                          int least) {
    const opd_op *op;
    int right = 0, refused = 0, turn = 0;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *card = opd_op_card(op);
        if (half >= 0 && turn++ % 2 != half) { continue; }
        const char *text = card && card->cases && !is_random(op) && !is_unfit(op) && check_compiles(opd_op_name(op))
            ? card->cases : "";
        for (; *text; text += strcspn(text, ";")) {
            int one;
            text += *text == ';';
            (void)snprintf(what, sizeof what, "    %s \"%.*s\" %s", opd_op_name(op), (int)strcspn(text, ";"), text,
                           opd_dtype_name(dtype));
            one = add(op, text, dtype);
            right += one == 1;
            refused += one == 0;
        }
    }
    printf("%d written, %d refused\n", right, refused);
    CHECK(check_compiles_a_share() || right > (half < 0 ? least : least / 2));
}
/* Writes, compiles and runs the cases of every second operator (half is 0 or 1), or of all (half is -1). */
static void walk_half(opd_scalar_type dtype, int half, int least, const char *compiler, const char *flags) {
    CHECK_OR_RETURN(new_folder() != NULL);
    add_operators(add_case, dtype, half, least);
    run_units(compiler, flags);
    remove_folder();
}
/* One dtype is compiled for this very machine: with the sanitizers float64, all operators; without them float32, every
   second operator, and the others only by a quick compiler.  Of the other dtypes it is every second operator, because
   compiling them takes minutes. */
static void walk(opd_scalar_type dtype, int least) {
    if (!have_compiler()) { SKIP("no cc"); }
    const char *const here = knows_this_machine() ? CHECKED_HERE : CHECKED, *const quick = quick_compiler();
    if (dtype == (UNITS_CHECKED ? OPD_FLOAT64 : OPD_FLOAT32)) {
        walk_half(dtype, UNITS_CHECKED ? -1 : 0, least, UNIT_COMPILER, here);
        if (!UNITS_CHECKED && (strcmp(quick, UNIT_COMPILER) || getenv("CHECK_PART"))) {
            walk_half(dtype, 1, least, quick, "-O1");
        }
    } else {
        walk_half(dtype, (dtype == OPD_BFLOAT16) != UNITS_CHECKED, least, quick, "-O1");
    }
}
TEST(operators_of_float32) { walk(OPD_FLOAT32, 1665); }
TEST(operators_of_float64) { walk(OPD_FLOAT64, 1520); }
TEST(operators_of_bfloat16) { walk(OPD_BFLOAT16, 1450); }
TEST(operators_of_float16) { walk(OPD_FLOAT16, 1400); }

//-- exported programs --------------------------------------------------------------------------------------------------

/* Returns 1 if the program was written as C, 0 if it cannot be. */
static int add_program(const char *name, const char *end) {
    unit *const u = &units[nunits];
    opd_value in[64], out[MOST_RESULTS];
    opd_c_options o;
    int i, n, rc;
    OPD_SCOPED;
    opd_program *const program = opd_program_load(golden(name, end), NULL);
    opd_tensor_file *const file = opd_tensor_file_open(golden(name, ".npz"));
    CHECK(program && file);
    if (!program || !file) { return 0; }
    (void)snprintf(what, sizeof what, "    %s%s", name, end);
    n = fill(program, file, in);
    memset(u, 0, sizeof *u);
    memset(&o, 0, sizeof o);
    (void)snprintf(u->name, sizeof u->name, "u%d", nunits);
    (void)snprintf(u->what, sizeof u->what, "%s", what);
    o.name = u->name;
    u->tolerance = strstr(name, "bf16") ? 4e-2 : 1e-5;
    rc = opd_program_write_c(program, in, n, folder, &o);
    if (rc) {
        if (getenv("OPD_VERBOSE")) { printf("%s: %s\n", what, opd_error_message()); }
        CHECK(strlen(opd_error_message()) > 10);
        opd_error_clear();
    }
    for (i = 0; rc == 0 && i < n; i++) {
        if (in[i].tag == OPD_TAG_TENSOR) { u->inputs[u->ninputs++] = opd_keep(opd_clone(in[i].u.t)); }
    }
    u->state = opd_program_writes(program);
    u->nwant = rc == 0 ? opd_program_run(program, in, n, out, MOST_RESULTS) : 0;
    CHECK(u->nwant >= 0);
    for (i = 0, n = 0; i < u->nwant; i++) {
        if (out[i].tag == OPD_TAG_TENSOR) { u->want[n++] = opd_keep(opd_clone(opd_detach(out[i].u.t))); }
    }
    u->nwant = n;
    opd_tensor_file_close(file);
    opd_program_free(program);
    nunits += rc == 0;
    return rc == 0;
}
TEST(exported_programs) {
    static const char *const files[] = {"conv", "conv_training", "heads", "mlp", "mlp_bf16", "state", "tied", "clicks", "const_graph",
                                        "fours", "modes", "numbers", "quantized",
                                        "ao_dynamic", "ao_groups", "pt2e", "lowered", "experts", "size_as_input", "sizes", "strides",
                                        "tensor_of_sizes", "tree", "two", "writers", "effects", "hints", "map", "scan",
                                        "tokens", "pooled", NULL};
    int i, right = 0;
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    for (i = 0; files[i]; i++) {
        if (check_walks(files[i]) && access(golden(files[i], ".npz"), R_OK) == 0) { right += add_program(files[i], ".pt2"); }
    }
    printf("%d programs written\n", right);
    CHECK(getenv("CHECK_PART") || right >= 4);
    run_units(UNIT_COMPILER, CHECKED);
    remove_folder();
}

static opd_tensor *numbers(int64_t rows, int64_t columns, double step) {
    const int64_t sizes[2] = {rows, columns};
    opd_tensor *const x = opd_empty(opd_ints_of(sizes, columns < 0 ? 1 : 2), OPD_FLOAT32);
    int64_t i;
    for (i = 0; x && i < opd_numel(x); i++) { opd_data_f32(x)[i] = (float)((double)(i * 7 % 11 - 5) * step); }
    return x;
}

/* Numbers with sizes, from -1 to 1; those of a variance from 0.1 on. */
static opd_tensor *spread(opd_scalar_type dtype, const int64_t *sizes, int ndim, int seed, bool positive) {
    opd_tensor *const x = opd_empty(opd_ints_of(sizes, ndim), OPD_FLOAT64);
    int64_t i;
    for (i = 0; x && i < opd_numel(x); i++) {
        const double y = (double)((i * 37 + seed * 11) % 101 - 50) / 50;
        opd_data_f64(x)[i] = positive ? 0.1 + fabs(y) : y;
    }
    return opd_to_dtype(x, dtype);
}
//-- sizes that are open -------------------------------------------------------------------------------------------------

/* Returns a tensor like x whose dim `dim` has size `size`.  Its elements repeat elements of x. */
static opd_tensor *of_size(opd_tensor *x, int dim, int64_t size) {
    opd_tensor *const at = opd_empty(opd_ints_of(&size, 1), OPD_INT64);
    int64_t i;
    for (i = 0; at && i < size; i++) { opd_data_i64(at)[i] = (i * 5 + i / 3) % opd_sizes(x)[dim]; }
    return at ? opd_index_select(x, dim, at) : NULL;
}
#define OPEN_RUNS 5
static const long few_sizes[OPEN_RUNS] = {1, 2, 3, 6, 9}, more_sizes[OPEN_RUNS] = {1, 2, 17, 40, 70};
static const long other_sizes[OPEN_RUNS] = {40, 1, 13, 5, 2};     /* of a second open size: the largest, the least, ... */
/* Returns an input for the sizes of a run; dims: its open ones, -1 none. */
static opd_tensor *of_run(const unit *u, opd_tensor *x, int dim, int dim_2) {
    if (dim >= 0) { x = of_size(x, dim, u->open); }
    if (dim_2 >= 0) { x = of_size(x, dim_2, u->open_2); }
    return opd_keep(opd_contiguous(dim < 0 && dim_2 < 0 ? opd_clone(x) : x));
}
/* Begins run k of a function that was written with open sizes. */
static unit *begin_run(int k, const char *name, const long *sizes, const long *sizes_2, double tolerance) {
    unit *const u = &units[nunits];
    memset(u, 0, sizeof *u);
    (void)snprintf(u->name, sizeof u->name, "%s", name);
    (void)snprintf(u->what, sizeof u->what, "%.150s, sizes %ld, %ld", what, sizes[k], sizes_2 ? sizes_2[k] : 0);
    u->open = sizes[k];
    u->least = sizes[0];
    u->most = sizes[OPEN_RUNS - 1];
    u->open_2 = sizes_2 ? sizes_2[k] : 0;
    u->least_2 = sizes_2 ? sizes_2[1] : 0;        /* the second size begins with its largest */
    u->most_2 = sizes_2 ? sizes_2[0] : 0;
    u->tolerance = tolerance;
    return u;
}
/* Adds the runs of a graph that was written as u%d with open sizes, against plain ones. */
static void add_open_runs(const opd_graph *g, opd_tensor *const *in, int n, const int *open, const int *open_2,
                          const long *sizes, const long *sizes_2, double tolerance) {
    char name[24];
    int i, k;
    (void)snprintf(name, sizeof name, "u%d", nunits);
    for (k = 0; k < OPEN_RUNS; k++) {
        unit *const u = begin_run(k, name, sizes, sizes_2, tolerance);
        opd_tensor *want[MOST_RESULTS];
        u->ninputs = n;
        for (i = 0; i < n; i++) { u->inputs[i] = of_run(u, in[i], open[i], open_2 ? open_2[i] : -1); }
        u->nwant = opd_graph_run(g, u->inputs, n, want, MOST_RESULTS);
        if (u->nwant < 0) {                       /* an index that is outside of its table for this size */
            const bool index = strstr(opd_error_message(), "idx") || strstr(opd_error_message(), "index") ||
                strstr(opd_error_message(), "Target");
            if (!index) { printf("%s: %s\n", u->what, opd_error_message()); }
            CHECK(index);
            opd_error_clear();
            for (i = 0; i < n; i++) { opd_release(u->inputs[i]); }
            continue;
        }
        for (i = 0; i < u->nwant; i++) { u->want[i] = opd_keep(opd_clone(want[i])); }
        for (i = 0; i < n; i++) {                 /* before a run writes into it */
            opd_release(u->inputs[i]);
            u->inputs[i] = of_run(u, in[i], open[i], open_2 ? open_2[i] : -1);
        }
        opd_error_clear();
        nunits++;
    }
}
/* Returns 1 if the case was written as C, 0 if it cannot be, -1 if there is no graph or no dim that can be open. */
static int add_open_case(const opd_op *op, const char *text, opd_scalar_type dtype, bool last) {
    static op_case c, other;
    opd_tensor *in[OPD_MAX_ARGS], *others[OPD_MAX_ARGS];
    int open[OPD_MAX_ARGS];
    char name[24];
    opd_c_options o;
    opd_graph *g;
    int64_t size = 0;
    int i, n, rc;
    OPD_SCOPED;
    if (nunits + OPEN_RUNS > MOST_UNITS || !read_case(&c, op, text, dtype, 0) || !read_case(&other, op, text, dtype, 0)) {
        opd_error_clear();
        return -1;
    }
    n = case_inputs(&c, in);
    (void)case_inputs(&other, others);
    for (i = 0; i < n; i++) {
        const int dim = last ? opd_ndim(others[i]) - 1 : 0;
        open[i] = -1;
        if (!opd_ndim(others[i]) || !opd_numel(others[i])) { continue; }
        if (!size) { size = opd_sizes(others[i])[dim]; }
        if (opd_sizes(others[i])[dim] == size && opd_is_contiguous(others[i])) { open[i] = dim; }
    }
    g = size ? opd_graph_trace(case_call, &c, in, n, NULL) : NULL;
    if (!g) {
        opd_error_clear();
        return -1;
    }
    memset(&o, 0, sizeof o);
    (void)snprintf(name, sizeof name, "u%d", nunits);
    o.name = name;
    o.open = open;
    o.least = 1;
    o.most = few_sizes[OPEN_RUNS - 1];
    rc = opd_graph_write_c(g, others, n, folder, &o);
    if (rc) {
        if (getenv("OPD_VERBOSE")) { printf("%s: %s\n", what, opd_error_message()); }
        CHECK(strlen(opd_error_message()) > 10);
        opd_error_clear();
    } else {
        add_open_runs(g, others, n, open, NULL, few_sizes, NULL, dtype == OPD_FLOAT64 ? 1e-9 : dtype == OPD_BFLOAT16 ? 2e-2 : 2e-5);
    }
    opd_graph_free(g);
    return rc == 0;
}
/* The first dim and the last in turn. */
static int add_open_dim(const opd_op *op, const char *text, opd_scalar_type dtype) {
    static int count;
    return add_open_case(op, text, dtype, count++ % 2 != 0);
}
TEST(operators_with_an_open_size) {
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    add_operators(add_open_dim, OPD_FLOAT32, UNITS_CHECKED ? 0 : 1, 600);
    run_units(quick_compiler(), "-O1");
    remove_folder();
}
/* Of x [n, 40] and y [n], and these constants. */
static opd_tensor *fixed_ones[5];
static int open_layers(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t columns = 40;
    opd_tensor *const w = fixed_ones[0];
    opd_tensor *const v = fixed_ones[1];
    (void)user;
    (void)n;
    out[0] = opd_softmax(opd_linear(opd_relu(opd_linear(in[0], w, NULL)), v, NULL), 1);
    out[1] = opd_layer_norm(opd_gelu(in[0]), opd_ints_of(&columns, 1), NULL, NULL, 1e-5);
    return opd_ok() ? 2 : -1;
}
static int open_attention(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const p = opd_softmax(opd_matmul(in[0], opd_transpose(in[0], 0, 1)), 1);
    (void)user;
    (void)n;
    out[0] = opd_matmul(p, in[0]);
    return out[0] ? 1 : -1;
}
static int open_depth(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_matmul(opd_transpose(in[0], 0, 1), in[0]);
    out[1] = opd_relu(opd_matmul(opd_unsqueeze(in[1], 0), in[0]));
    return out[1] ? 2 : -1;
}
static int open_sums(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t zero = 0;
    (void)user;
    (void)n;
    out[0] = opd_sum_dim(in[0], opd_ints_of(&zero, 1), false);
    out[1] = opd_exp(opd_amax(in[0], opd_ints_of(&zero, 1), true));
    out[2] = opd_sum(opd_mul(in[0], in[0]));
    out[3] = opd_sum_dim(opd_exp(opd_transpose(in[0], 0, 1)), opd_ints_of(&zero, 1), false);
    out[4] = opd_sum(opd_exp(in[1]));
    return opd_ok() && opd_max_dim(out + 5, in[0], 0, true) == 0 ? 7 : -1;
}
static int open_softmax(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_softmax(in[0], 0);
    out[1] = opd_log_softmax(in[1], 0);
    out[2] = opd_softmax(opd_transpose(in[0], 0, 1), 1);
    return opd_ok() ? 3 : -1;
}
static int open_order(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    return opd_sort_stable(out, in[0], opd_value_bool(true), 0, false) == 0 &&
        opd_topk_full(out + 2, in[0], 1, 0, true, true) == 0 ? 4 : -1;
}
static int open_slices(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const flat = opd_flatten(opd_relu(in[0]), 0, -1);
    (void)user;
    (void)n;
    out[0] = opd_narrow(flat, 0, 0, 13);
    out[1] = opd_exp(opd_narrow(opd_neg(flat), 0, 3, 30));
    out[2] = opd_mul(opd_narrow(opd_exp(in[0]), 1, 5, 20), opd_narrow(in[0], 1, 20, 20));
    return opd_ok() ? 3 : -1;
}
static int open_turned_slices(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const turned = opd_contiguous(opd_transpose(opd_exp(in[0]), 0, 1));
    (void)user;
    (void)n;
    out[0] = opd_neg(opd_narrow(opd_flatten(turned, 0, -1), 0, 0, 5));
    return opd_ok() ? 1 : -1;
}
static int open_turned(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const turned = opd_contiguous(opd_transpose(opd_exp(in[0]), 0, 1));
    (void)user;
    (void)n;
    out[0] = opd_neg(opd_flatten(turned, 0, -1));
    out[1] = opd_mul(turned, in[1]);
    return opd_ok() ? 2 : -1;
}
static int open_joined(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *all[2] = {in[0], fixed_ones[2]}, *x;
    (void)user;
    (void)n;
    x = opd_cat(opd_tensors_of(all, 2), 0);
    out[0] = opd_select(x, 0, 39);
    out[1] = opd_exp(x);
    out[2] = opd_sum_dim(opd_narrow(x, 0, 20, 31), opd_ints_of(NULL, 0), false);
    return opd_ok() ? 3 : -1;
}
static int open_images(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t image[] = {-1, 2, 4, 5}, w[] = {6, 2, 3, 3}, one[] = {1, 1};
    opd_tensor *const weight = opd_view(fixed_ones[3], opd_ints_of(w, 4));
    opd_tensor *const y = opd_conv2d_full(opd_view(in[0], opd_ints_of(image, 4)), weight, fixed_ones[4], opd_ints_of(one, 2),
                                     opd_ints_of(one, 2), opd_ints_of(one, 2), 1);
    (void)user;
    (void)n;
    out[0] = opd_relu(y);
    out[1] = opd_flatten(out[0], 0, -1);
    return opd_ok() ? 2 : -1;
}
/* Causal attention, with positions. */
static int open_causal(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t heads[4] = {1, -1, 4, 10}, flat[2] = {-1, 40};
    opd_tensor *const x = opd_transpose(opd_view(in[0], opd_ints_of(heads, 4)), 1, 2);
    opd_tensor *const y = opd_scaled_dot_product_attention_full(x, opd_exp(x), x, NULL, 0, true, opd_value_none(), false);
    (void)user;
    (void)n;
    out[0] = opd_reshape(opd_transpose(y, 1, 2), opd_ints_of(flat, 2));
    return out[0] ? 1 : -1;
}
/* Attention with a cache, to which one token is added. */
static int open_cached(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t heads[4] = {1, -1, 4, 10};
    opd_tensor *all[2] = {in[0], opd_narrow(fixed_ones[2], 0, 3, 1)}, *k, *q;
    (void)user;
    (void)n;
    q = opd_transpose(opd_view(all[1], opd_ints_of(heads, 4)), 1, 2);
    k = opd_transpose(opd_view(opd_cat(opd_tensors_of(all, 2), 0), opd_ints_of(heads, 4)), 1, 2);
    out[0] = opd_scaled_dot_product_attention(q, k, opd_sin(k), NULL, 0, false);
    out[1] = opd_mul_Scalar(k, opd_value_double(0.5));
    return opd_ok() ? 2 : -1;
}
static int open_moments(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t zero = 0, one = 1;
    const opd_ints rows = opd_ints_of(&zero, 1);
    (void)user;
    (void)n;
    out[0] = opd_mean_dim(in[0], rows, false);
    out[1] = opd_var_correction(in[0], rows, opd_value_int(1), true);
    out[2] = opd_std_correction(opd_transpose(in[0], 0, 1), opd_ints_of(&one, 1), opd_value_int(0), false);
    out[3] = opd_linalg_vector_norm_full(in[0], opd_value_int(2), opd_value_int(0), false, opd_value_none());
    out[4] = opd_argmax(in[0], opd_value_int(0), false);
    return opd_ok() ? 5 : -1;
}
static int open_moved(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t zero = 0;
    (void)user;
    (void)n;
    out[0] = opd_cumsum(in[0], 0);
    out[1] = opd_flip(in[0], opd_ints_of(&zero, 1));
    out[2] = opd_triu(opd_mul(opd_unsqueeze(in[1], 0), opd_unsqueeze(in[1], 1)), 1);
    return opd_ok() ? 3 : -1;
}
/* Functions of x [n, m] with two open sizes. */
static int open_both(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const x = in[0], *const y = opd_matmul(x, opd_transpose(x, 0, 1)), *all[2];
    (void)user;
    (void)n;
    out[0] = opd_softmax(opd_tril(y, 0), 1);
    out[1] = opd_mean(x);
    out[2] = opd_matmul(opd_transpose(x, 0, 1), opd_sigmoid(y));
    out[3] = opd_add(x, opd_unsqueeze(in[1], 1));
    all[0] = x;
    all[1] = out[3];
    out[4] = opd_cumsum(opd_flatten(opd_cat(opd_tensors_of(all, 2), 1), 0, -1), 0);
    return opd_ok() ? 5 : -1;
}
static int open_pairs(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t two = 2;
    opd_tensor *const less = opd_sub(opd_unsqueeze(in[0], 0), opd_unsqueeze(in[0], 1));
    (void)user;
    (void)n;
    out[0] = opd_sum_dim(opd_exp(less), opd_ints_of(&two, 1), false);
    return opd_ok() ? 1 : -1;
}
static int open_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const at = opd_to_dtype(opd_mul_Scalar(in[1], opd_value_double(0.01)), OPD_INT64);
    (void)user;
    (void)n;
    out[0] = opd_index_select(opd_exp(in[0]), 0, at);
    return opd_ok() ? 1 : -1;
}
static int open_in_place(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const x = opd_clone(in[0]);
    (void)user;
    (void)n;
    (void)opd_add_(opd_narrow(x, 1, 0, 20), opd_narrow(in[0], 1, 20, 20));
    (void)opd_mul_(opd_select(x, 0, 0), opd_select(in[0], 0, 0));
    out[0] = opd_exp(x);
    return opd_ok() ? 1 : -1;
}
static int open_means(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_mean(in[0]);
    return opd_ok() ? 1 : -1;
}
/* Begins a unit with an open size from 1 to the largest of its runs. */
static void begin_open(opd_c_options *o, char name[24], const char *text, const int *open) {
    (void)snprintf(what, sizeof what, "    %s", text);
    (void)snprintf(name, 24, "u%d", nunits);
    memset(o, 0, sizeof *o);
    o->name = name;
    o->open = open;
    o->least = 1;
    o->most = more_sizes[OPEN_RUNS - 1];
}
/* Writes a function with open sizes; refused: words of the error that is expected. */
static void add_open_sizes(const char *text, opd_transform_fn fn, bool both, const char *refused) {
    const int open[2] = {0, 0}, open_2[2] = {1, -1};
    char name[24];
    opd_c_options o;
    int rc;
    if (!check_walks(text)) { return; }
    OPD_SCOPED;
    opd_tensor *const in[2] = {numbers(23, 40, 0.1), numbers(23, -1, 0.2)};
    opd_graph *const g = opd_graph_trace(fn, NULL, in, 2, NULL);
    CHECK_OR_RETURN(g != NULL);
    begin_open(&o, name, text, open);
    if (both) {
        o.open_2 = open_2;
        o.least_2 = other_sizes[1];
        o.most_2 = other_sizes[0];
    }
    rc = opd_graph_write_c(g, in, 2, folder, &o);
    if (rc && (!refused || !strstr(opd_error_message(), refused))) { printf("%s: %s\n", text, opd_error_message()); }
    CHECK(refused ? rc && strstr(opd_error_message(), refused) : rc == 0);
    opd_error_clear();
    if (rc == 0) { add_open_runs(g, in, 2, open, both ? open_2 : NULL, more_sizes, both ? other_sizes : NULL, 1e-5); }
    opd_graph_free(g);
}
static void add_open_function(const char *text, opd_transform_fn fn, const char *refused) {
    add_open_sizes(text, fn, false, refused);
}
/* No compiler warns of the written code. */
static void check_warnings(void) {
    char command[200];
    (void)snprintf(command, sizeof command, "cd '%s' && ${CC:-cc} -std=c99 -Wall -Wextra -Werror -fsyntax-only u*.c", folder);
    if (!nunits) { return; }
    if (!getenv("CC") || !strstr(getenv("CC"), "tcc")) { CHECK_INT(system(command), 0); }
}
TEST(small_graphs_with_an_open_size) {
    int i;
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    fixed_ones[0] = opd_keep(numbers(33, 40, 0.03));
    fixed_ones[1] = opd_keep(numbers(7, 33, 0.1));
    fixed_ones[2] = opd_keep(numbers(50, 40, 0.25));
    fixed_ones[3] = opd_keep(numbers(6, 18, 0.1));
    fixed_ones[4] = opd_keep(numbers(6, -1, 0.1));
    add_open_function("layers", open_layers, NULL);
    add_open_function("depth", open_depth, NULL);
    add_open_function("sums", open_sums, NULL);
    add_open_function("softmax", open_softmax, NULL);
    add_open_function("order", open_order, NULL);
    add_open_function("slices", open_slices, NULL);
    add_open_function("turned", open_turned, NULL);
    add_open_function("joined", open_joined, NULL);
    add_open_function("images", open_images, NULL);
    add_open_function("rows", open_rows, NULL);
    add_open_function("in place", open_in_place, NULL);
    add_open_function("attention", open_attention, NULL);
    add_open_function("pairs", open_pairs, NULL);
    add_open_function("means", open_means, NULL);
    add_open_function("causal attention", open_causal, NULL);
    add_open_function("a cache", open_cached, NULL);
    add_open_function("moments", open_moments, NULL);
    add_open_function("moved", open_moved, NULL);
    add_open_sizes("both sizes", open_both, true, NULL);
    /* the five elements are in one row only for large sizes */
    add_open_function("turned slices", open_turned_slices, "together");
    check_warnings();
    run_units(UNIT_COMPILER, CHECKED);
    remove_folder();
    for (i = 0; i < 5; i++) { opd_release(fixed_ones[i]); }
}
/* Writes a graph of which input 0 has an open size; refused: words of the error that is expected. */
static void add_open_text(const char *text, const char *refused, const char *body) {
    const int open[2] = {0, -1};
    char name[24];
    opd_c_options o;
    OPD_SCOPED;
    opd_tensor *const in[2] = {numbers(23, -1, 0.1), numbers(80, 4, 0.2)};
    opd_graph *const g = opd_graph_parse(body);
    if (!g) { printf("%s: %s\n", text, opd_error_message()); }
    CHECK_OR_RETURN(g != NULL);
    begin_open(&o, name, text, open);
    CHECK_INT(opd_graph_write_c(g, in, 2, folder, &o), refused ? -1 : 0);
    if (!opd_ok() && (!refused || !strstr(opd_error_message(), refused))) { printf("%s: %s\n", text, opd_error_message()); }
    CHECK(!refused == opd_ok() && (!refused || strstr(opd_error_message(), refused)));
    opd_error_clear();
    if (!refused) { add_open_runs(g, in, 2, open, NULL, more_sizes, NULL, 1e-5); }
    opd_graph_free(g);
}
#define OPEN_GRAPH "graph(%x, %table):\n  %zero : int = prim::Constant[value=0]()\n  %one : int = prim::Constant[value=1]()\n" \
    "  %none : NoneType = prim::Constant()\n  %n : int = aten::size(%x, %zero)\n"
#define TWICE_IF "  %two_ : int = prim::Constant[value=2]()\n  %r : Tensor = prim::If(%is)\n    block0():\n" \
    "      %t : Tensor = aten::mul(%x, %two_)\n      -> (%t)\n    block1():\n      -> (%x)\n" \
    "  %s = aten::add(%r, %one)\n  return (%s)\n"
TEST(graphs_that_ask_for_an_open_size) {
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    /* a result that shrinks when the size grows: memory must be for the result of the smallest size */
    add_open_text("less", NULL, OPEN_GRAPH
        "  %left = aten::slice(%table, %zero, %n, %none, %one)\n  %e = aten::exp(%left)\n"
        "  %rows = prim::ListConstruct(%one)\n  %columns = prim::ListConstruct(%zero)\n"
        "  %y = aten::sum(%e, %rows)\n  %z = aten::sum(%e, %columns)\n"
        "  %both = prim::ListConstruct(%y, %z)\n  %r = aten::cat(%both, %zero)\n  return (%r)\n");
    add_open_text("rolled", NULL, OPEN_GRAPH
        "  %by = prim::ListConstruct(%one)\n  %dims = prim::ListConstruct(%zero)\n"
        "  %y = aten::roll(%x, %by, %dims)\n  %r = aten::mul(%y, %x)\n  return (%r)\n");
    add_open_text("scaled", NULL, OPEN_GRAPH
        "  %y = aten::div(%x, %n)\n  %root : float = aten::sqrt(%n)\n  %z = aten::mul(%x, %root)\n"
        "  %part : float = aten::div(%one, %n)\n  %w = aten::mul(%x, %part)\n  %u = aten::add(%y, %z)\n"
        "  %r = aten::add(%u, %w)\n  return (%r)\n");
    add_open_text("counted", NULL, OPEN_GRAPH
        "  %i = aten::arange(%n, %none, %none, %none, %none)\n  %j = aten::mul(%i, %n)\n  %r = aten::mul(%x, %j)\n"
        "  return (%r)\n");
    add_open_text("remainders", NULL, OPEN_GRAPH
        "  %more : int = aten::add(%n, %one)\n  %i = aten::arange(%more, %none, %none, %none, %none)\n"
        "  %r = aten::remainder(%i, %n)\n  return (%r)\n");
    add_open_text("halves", "not a sum of multiples", OPEN_GRAPH
        "  %two : int = prim::Constant[value=2]()\n  %half : int = aten::floordiv(%n, %two)\n"
        "  %r = aten::slice(%x, %zero, %half, %none, %one)\n  return (%r)\n");
    add_open_text("cut", "in another way than larger", OPEN_GRAPH
        "  %most : int = prim::Constant[value=20]()\n  %r = aten::slice(%x, %zero, %zero, %most, %one)\n"
        "  return (%r)\n");
    add_open_text("cubes", "depends on the open size", OPEN_GRAPH
        "  %two : int = aten::mul(%n, %n)\n  %three : int = aten::mul(%two, %n)\n  %r = aten::mul(%x, %three)\n  return (%r)\n");
    /* what is decided by a size that nobody looked at */
    add_open_text("one of them", "depends on the open size", OPEN_GRAPH
        "  %ten : int = prim::Constant[value=10]()\n  %is : bool = aten::eq(%n, %ten)\n" TWICE_IF);
    add_open_text("sixteenths", "depends on the open size", OPEN_GRAPH
        "  %by : int = prim::Constant[value=16]()\n  %rest : int = aten::remainder(%n, %by)\n"
        "  %is : bool = aten::eq(%rest, %zero)\n" TWICE_IF);
    add_open_text("lists", "depends on the open size", OPEN_GRAPH
        "  %ten : int = prim::Constant[value=10]()\n  %sizes : int[] = aten::size(%x)\n"
        "  %these : int[] = prim::ListConstruct(%ten)\n  %is : bool = aten::eq(%sizes, %these)\n" TWICE_IF);
    add_open_text("whole rests", "depends on the open size", OPEN_GRAPH
        "  %by : int = prim::Constant[value=12]()\n  %rest : int = aten::remainder(%n, %by)\n"
        "  %is : bool = aten::lt(%rest, %by)\n" TWICE_IF);
    add_open_text("a number", "depends on the open size", OPEN_GRAPH
        "  %ten : int = prim::Constant[value=10]()\n  %is : int = aten::sub(%n, %ten)\n" TWICE_IF);
    /* what follows for all of them */
    add_open_text("always", NULL, OPEN_GRAPH
        "  %most : int = prim::Constant[value=70]()\n  %square : int = aten::mul(%n, %n)\n"
        "  %a : bool = aten::le(%n, %most)\n  %b : bool = aten::lt(%square, %n)\n  %c : bool = aten::ne(%n, %zero)\n"
        "  %d : bool = aten::__not__(%b)\n  %e : bool = aten::__and__(%a, %c)\n  %is : bool = aten::__and__(%d, %e)\n"
        TWICE_IF);
    add_open_text("parts", NULL, OPEN_GRAPH
        "  %two : int = prim::Constant[value=2]()\n  %double : int = aten::mul(%n, %two)\n"
        "  %more : int = aten::add(%double, %one)\n  %half : int = aten::floordiv(%more, %two)\n"
        "  %rest : int = aten::remainder(%more, %two)\n  %larger : int = prim::max(%half, %rest)\n"
        "  %is : bool = aten::eq(%larger, %n)\n" TWICE_IF);
    run_units(quick_compiler(), "");
    remove_folder();
}
/* The larger one of two sizes whose ranges overlap more or less, and the difference to the smaller one. */
TEST(two_open_sizes_that_are_compared) {
    static const struct { int64_t least, most; bool written; } all[] = {{61, 900, false}, {64, 900, true}, {1, 61, false}};
    static const char *const ends[] = {"  %larger : int = prim::max(%n, %m)\n  %r = aten::mul(%x, %larger)\n  return (%r)\n",
        "  %one : int = prim::Constant[value=1]()\n  %r = aten::slice(%x, %zero, %zero, %m, %one)\n  return (%r)\n"};
    const int open[2] = {0, -1}, open_2[2] = {-1, 0};
    size_t i;
    opd_tensor *const in[2] = {numbers(23, 40, 0.1), numbers(70, -1, 0.2)};
    CHECK_OR_RETURN(new_folder() != NULL);
    for (i = 0; i < 2 * sizeof all / sizeof *all; i++) {
        char text[600];
        opd_c_options o;
        opd_graph *g;
        (void)snprintf(text, sizeof text,
            "graph(%%x, %%y):\n  %%zero : int = prim::Constant[value=0]()\n  %%n : int = aten::size(%%x, %%zero)\n"
            "  %%m : int = aten::size(%%y, %%zero)\n%s", ends[i % 2]);
        g = opd_graph_parse(text);
        CHECK_OR_RETURN(g != NULL);
        memset(&o, 0, sizeof o);
        o.open = open;
        o.least = 1;
        o.most = 64;
        o.open_2 = open_2;
        o.least_2 = all[i / 2].least;
        o.most_2 = all[i / 2].most;
        CHECK_INT(opd_graph_write_c(g, in, 2, folder, &o), all[i / 2].written ? 0 : -1);
        CHECK(all[i / 2].written || strstr(opd_error_message(), "open size"));
        opd_error_clear();
        opd_graph_free(g);
    }
    remove_folder();
}
static int squares(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const x = in[0];
    (void)user;
    (void)n;
    out[0] = opd_relu(opd_sub(opd_unsqueeze(x, 1), x));
    out[1] = opd_argmax(out[0], OPD_NONE, false);
    return out[1] ? 2 : -1;
}
/* If long has 32 bits, the square of a size may not fit: such a size is out of range. */
TEST(squares_of_open_sizes_in_a_small_long) {
    static const struct { int64_t most; bool checked; } all[] = {{46000, false}, {50000, true}};
    const int open[1] = {0};
    size_t i;
    opd_tensor *const in[1] = {numbers(23, -1, 0.1)};
    opd_graph *const g = opd_graph_trace(squares, NULL, in, 1, NULL);
    CHECK_OR_RETURN(g != NULL && new_folder() != NULL);
    for (i = 0; i < sizeof all / sizeof *all; i++) {
        static char text[100000];
        char path[120];
        opd_c_options o;
        FILE *file;
        memset(&o, 0, sizeof o);
        o.open = open;
        o.least = 1;
        o.most = all[i].most;
        CHECK_INT(opd_graph_write_c(g, in, 1, folder, &o), 0);
        (void)snprintf(path, sizeof path, "%s/model.c", folder);
        file = fopen(path, "rb");
        CHECK_OR_RETURN(file != NULL);
        memset(text, 0, sizeof text);
        CHECK(fread(text, 1, sizeof text - 1, file) > 100);
        (void)fclose(file);
        CHECK_INT(strstr(text, "sizeof open_size < 8") != NULL, all[i].checked);
    }
    opd_graph_free(g);
    remove_folder();
}
TEST(bad_open_sizes) {
    static const struct { int first, second; int64_t least, most; const char *text; } all[] = {
        {0, 0, 0, 4, "range"}, {0, 0, 3, 2, "range"}, {0, 0, 1, 1, "range"}, {-1, -1, 1, 4, "none of the inputs"},
        {2, -1, 1, 4, "dim 2 of input"}, {1, 0, 1, 4, "dim 0 of input"}, {0, 1, 1, 4, "dim 1 of input"}};
    size_t i;
    opd_tensor *const in[2] = {numbers(23, 40, 0.1), numbers(23, -1, 0.2)};
    opd_graph *const g = opd_graph_trace(open_softmax, NULL, in, 2, NULL);
    CHECK_OR_RETURN(g != NULL && new_folder() != NULL);
    for (i = 0; i < sizeof all / sizeof *all; i++) {
        const int open[2] = {all[i].first, all[i].second};
        opd_c_options o;
        memset(&o, 0, sizeof o);
        o.open = open;
        o.least = all[i].least;
        o.most = all[i].most;
        CHECK_INT(opd_graph_write_c(g, in, 2, folder, &o), -1);
        CHECK(strstr(opd_error_message(), all[i].text) != NULL);
        opd_error_clear();
    }
    opd_graph_free(g);
    remove_folder();
}
/* Reads the sizes of an input, "int64 [s0=1..64, 3]", open ones as 7; dims: which has the first, or the second, of the
   names that begin with s.  Returns how many dims there are. */
static int open_dims(const char *type, char names[2][40], int64_t *sizes, int dims[2]) {
    int ndim = 0;
    const char *at = strchr(type, '[') + 1;
    dims[0] = dims[1] = -1;
    for (; *at && *at != ']'; at += *at == ',' ? 2 : 0) {
        const size_t length = strcspn(at, "=,]");
        if (*at == 's') {
            const int which = *names[0] && (strlen(names[0]) != length || strncmp(names[0], at, length) != 0);
            (void)snprintf(names[which], sizeof names[which], "%.*s", (int)length, at);
            dims[which] = ndim;
        }
        sizes[ndim++] = *at == 's' ? 7 : strtoll(at, NULL, 10);
        at += strcspn(at, ",]");
    }
    return ndim;
}
/* Returns integers from 0 to below - 1. */
static opd_tensor *small_numbers(const int64_t *sizes, int ndim, int64_t below) {
    opd_tensor *const x = opd_empty(opd_ints_of(sizes, ndim), OPD_INT64);
    int64_t i;
    for (i = 0; x && i < opd_numel(x); i++) { opd_data_i64(x)[i] = (i * i + 3 * i) / 2 % below; }
    return x;
}
/* Programs that were exported with open sizes, at several ones; sizes NULL: the second is open, sizes_2 NULL: the first
   one. */
static void add_open_program(const char *path, const long *sizes, const long *sizes_2, const char *refused) {
    opd_value in[8], others[8], out[MOST_RESULTS];
    int open[2][8], i, k, n;
    char type[300], name[24], names[2][40] = {"", ""};
    opd_c_options o;
    if (!check_walks(strrchr(path, '/'))) { return; }
    OPD_SCOPED;
    opd_program *const program = opd_program_load(path, NULL);
    CHECK(program != NULL);
    if (!program) { return; }
    n = opd_program_ninputs(program);
    for (i = 0; i < n; i++) {
        int64_t dims[OPD_MAX_DIMS];
        int is[2];
        (void)opd_program_input_type(program, i, type, sizeof type);
        const int ndim = open_dims(type, names, dims, is);
        open[0][i] = sizes ? is[0] : is[1];
        open[1][i] = is[1];
        in[i] = opd_value_tensor(type[0] == 'i' ? small_numbers(dims, ndim, 20) : spread(OPD_FLOAT32, dims, ndim, i, false));
    }
    memset(&o, 0, sizeof o);
    (void)snprintf(name, sizeof name, "u%d", nunits);
    o.name = name;
    o.open = open[0];
    o.least = sizes ? sizes[0] : sizes_2[1];
    o.most = sizes ? sizes[OPEN_RUNS - 1] : sizes_2[0];
    if (sizes && sizes_2) {
        o.open_2 = open[1];
        o.least_2 = sizes_2[1];
        o.most_2 = sizes_2[0];
    }
    (void)snprintf(what, sizeof what, "    %s", strrchr(path, '/'));
    if (opd_program_write_c(program, in, n, folder, &o)) {
        if (!refused || !strstr(opd_error_message(), refused)) { printf("%s: %s\n", what, opd_error_message()); }
        CHECK(refused && strstr(opd_error_message(), refused));
        opd_error_clear();
        opd_program_free(program);
        return;
    }
    CHECK(!refused);
    for (k = 0; k < OPEN_RUNS; k++) {
        unit *const u = begin_run(k, name, sizes ? sizes : sizes_2, sizes ? sizes_2 : NULL, 1e-5);
        u->least = (long)o.least;
        u->most = (long)o.most;
        for (i = 0; i < n; i++) {
            u->inputs[i] = of_run(u, in[i].u.t, open[0][i], o.open_2 ? open[1][i] : -1);
            others[i] = opd_value_tensor(u->inputs[i]);
        }
        u->ninputs = n;
        u->nwant = opd_program_run(program, others, n, out, MOST_RESULTS);
        if (u->nwant < 0) { printf("%s: %s\n", u->what, opd_error_message()); }
        CHECK(u->nwant >= 0);
        for (i = 0; i < u->nwant; i++) { u->want[i] = opd_keep(opd_clone(opd_detach(out[i].u.t))); }
        nunits++;
    }
    opd_program_free(program);
}
TEST(programs_with_an_open_size) {
    static const long batches[OPEN_RUNS] = {1, 2, 7, 33, 64}, beyond[OPEN_RUNS] = {1, 2, 7, 33, 65};
    static const long some[OPEN_RUNS] = {4, 5, 7, 12, 16}, tokens[OPEN_RUNS] = {32, 1, 12, 5, 2};
    int i;
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    add_open_program(golden("conv", ".pt2"), batches, NULL, NULL);
    add_open_program(golden("conv", ".core.pt2"), batches, NULL, NULL);
    add_open_program(golden("conv", ".pt2"), beyond, NULL, "from 1 to 64");
    add_open_program(golden("sizes", ".pt2"), some, NULL, "arange: a number is no");   /* of max(rows, columns) */
    add_open_program(golden("tensor_of_sizes", ".pt2"), some, NULL, NULL);
    add_open_program(golden("branch_on_size", ".pt2"), some, NULL, "depends on the open size");
    for (i = 0; i < 4; i++) {
        const char *const path = golden(i < 2 ? "tokens" : "pooled", i % 2 ? ".core.pt2" : ".pt2");
        add_open_program(path, batches, NULL, NULL);
        add_open_program(path, NULL, tokens, NULL);
        add_open_program(path, batches, tokens, NULL);
    }
    run_units(UNIT_COMPILER, CHECKED);
    remove_folder();
}
//-- small graphs of one kind each ---------------------------------------------------------------------------------------

static opd_tensor *whole(opd_tensor *x) { return opd_to_dtype(x, OPD_INT64); }
static opd_tensor *row_sums(opd_tensor *x) {
    const int64_t one = 1;
    return opd_sum_dim(x, opd_ints_of(&one, 1), false);
}
/* An input is read before it is written. */
static int read_then_written(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const sums = row_sums(in[0]), *const was = opd_exp(in[1]);
    (void)user;
    (void)n;
    out[0] = was;
    return opd_copy_(in[1], opd_add(opd_mul(sums, sums), sums)) ? 1 : -1;
}
/* Two nests of loops are computed row by row together; a third one, with other rows, is not. */
static int rows_that_do_not_fit(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t sizes[] = {1, 2, 2}, strides[] = {0, 1, 2};
    (void)user;
    (void)n;
    out[0] = opd_fill_(in[0], opd_value_double(-1.5));
    out[1] = opd_as_strided(in[1], opd_ints_of(sizes, 3), opd_ints_of(strides, 3));
    return opd_ok() ? 2 : -1;
}
static int over_one_element(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t dims[] = {0, 2};
    opd_tensor *const x = opd_unsqueeze(opd_unsqueeze(opd_select(in[0], 0, 1), 0), 2), *pair[2];
    (void)user;
    (void)n;
    if (opd_max_dim(pair, x, 2, true) < 0) { return -1; }
    out[0] = opd_amin(x, opd_ints_of(dims, 2), true);
    out[1] = opd_any_dim(x, 0, false);
    out[2] = pair[1];
    out[3] = opd_sum(opd_select(in[1], 0, 2));
    out[4] = opd_all_dim(opd_select(in[1], 0, 2), 0, false);
    return opd_ok() ? 5 : -1;
}
static int over_nothing(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const none = opd_narrow(in[0], 1, 2, 0);
    (void)user;
    (void)n;
    out[0] = row_sums(none);
    out[1] = opd_matmul(none, opd_transpose(none, 0, 1));
    out[2] = opd_all_dim(none, 1, false);
    out[3] = opd_exp(none);
    return opd_ok() ? 4 : -1;
}
static int casts_that_do_not_fit(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const x = opd_mul_Scalar(in[0], opd_value_double(3.3e9)), *const none = opd_div(x, opd_sub(x, x));
    (void)user;
    (void)n;
    out[0] = opd_to_dtype(x, OPD_INT32);
    out[1] = opd_to_dtype(none, OPD_INT32);
    out[2] = opd_to_dtype(x, OPD_INT16);
    out[3] = opd_to_dtype(x, OPD_UINT8);
    out[4] = whole(opd_mul(x, x));
    return opd_ok() ? 5 : -1;
}
/* A million floats: adding them one after the other in float would give an error of a hundredth. */
static int long_sums(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t zero = 0, sizes[] = {1000000, 24}, row[] = {3, 1000000 / 1250};
    opd_tensor *const many = opd_expand(opd_select(opd_select(in[0], 0, 0), 0, 1), opd_ints_of(sizes, 2));
    opd_tensor *const three = opd_ones(opd_ints_of(row, 2), OPD_FLOAT32);
    (void)user;
    (void)n;
    out[0] = opd_sum(many);
    out[1] = opd_sum_dim(many, opd_ints_of(&zero, 1), false);
    out[2] = opd_sum_dim(opd_select(many, 1, 0), opd_ints_of(&zero, 1), false);
    out[3] = opd_matmul(three, opd_narrow(many, 0, 0, 800));
    return opd_ok() ? 4 : -1;
}
/* Windows with nothing but minus infinity, some of them padding. */
static int pools_of_the_least(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t sizes[] = {1, 4, 6}, window[] = {2, 3}, steps[] = {2, 2}, pads[] = {1, 1};
    int64_t spread[] = {1, 1};
    opd_tensor *const least = opd_mul_Scalar(opd_ge(in[0], opd_mul(in[0], in[0])), opd_value_double(0));
    opd_tensor *const x = opd_view(opd_sub(least, opd_full_like(in[0], opd_value_double((double)INFINITY))),
                                   opd_ints_of(sizes, 3));
    int i;
    (void)user;
    (void)n;
    for (i = 0; i < 2; i++) {
        if (opd_max_pool2d_with_indices_full(out + 2 * i, x, opd_ints_of(window, 2), opd_ints_of(steps, 2),
                                             opd_ints_of(pads, 2), opd_ints_of(spread, 2), false) < 0) {
            return -1;
        }
        spread[1] = 2;
    }
    return 4;
}
static int made_inside(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const sums = opd_zeros(opd_ints_of(opd_sizes(in[0]), 2), OPD_FLOAT32);
    (void)user;
    (void)n;
    (void)opd_add_(sums, in[0]);
    out[0] = opd_mul(sums, opd_arange(opd_value_int(opd_sizes(in[0])[1]), OPD_FLOAT32));
    return opd_ok() ? 1 : -1;
}
static int other_dtypes_of_memory(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_view_dtype(opd_mul(in[0], in[0]), OPD_INT32);
    return out[0] ? 1 : -1;
}
static int divides(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const by = whole(opd_add_Scalar(in[1], opd_value_int(6)));
    (void)user;
    (void)n;
    out[0] = opd_floor_divide(opd_full_like(by, opd_value_int(7)), by);
    return out[0] ? 1 : -1;
}
static int has_remainders(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const by = whole(opd_add_Scalar(in[1], opd_value_int(6)));
    (void)user;
    (void)n;
    out[0] = opd_sum(opd_remainder(opd_full_like(by, opd_value_int(7)), by));
    return out[0] ? 1 : -1;
}
static int reads_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const half = opd_mul_Scalar(opd_relu(in[1]), opd_value_double(0.5));
    (void)user;
    (void)n;
    out[0] = opd_embedding(in[0], whole(opd_add_Scalar(half, opd_value_int(1))));
    return out[0] ? 1 : -1;
}
static int selects_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const half = opd_mul_Scalar(opd_neg(opd_relu(opd_neg(in[1]))), opd_value_double(0.5));
    (void)user;
    (void)n;
    out[0] = opd_index_select(in[0], 0, whole(opd_add_Scalar(half, opd_value_int(2))));
    return out[0] ? 1 : -1;
}
/* Adds a function, traced with `in`, as a unit.  What a run with `others` gives and leaves in them is expected of it; with
   a code that run fails, and the unit returns the code. */
static void add_function(const char *text, opd_transform_fn fn, void *user, opd_tensor *const *in, opd_tensor *const *others,
                         int n, double tolerance, int code) {
    unit *const u = &units[nunits];
    opd_tensor *copies[3], *want[MOST_RESULTS];
    opd_c_options o;
    opd_graph *g;
    int i;
    memset(u, 0, sizeof *u);
    memset(&o, 0, sizeof o);
    (void)snprintf(u->name, sizeof u->name, "u%d", nunits);
    (void)snprintf(u->what, sizeof u->what, "    %s", text);
    u->ninputs = n;
    u->tolerance = tolerance;
    u->code = code;
    o.name = u->name;
    for (i = 0; i < n; i++) {
        copies[i] = opd_clone(in[i]);
        u->inputs[i] = opd_keep(opd_clone(others[i]));
    }
    g = opd_graph_trace(fn, user, copies, n, NULL);
    CHECK(g != NULL && opd_graph_write_c(g, in, n, folder, &o) == 0);
    if (!opd_ok()) { printf("%s: %s\n", text, opd_error_message()); }
    u->nwant = g ? opd_graph_run(g, others, n, want, MOST_RESULTS) : 0;
    CHECK_INT(u->nwant < 0, code != 0);
    opd_error_clear();
    if (g && code) { u->nwant = opd_graph_run(g, in, n, want, MOST_RESULTS); }     /* how large results are */
    for (i = 0; i < u->nwant; i++) { u->want[i] = opd_keep(opd_clone(want[i])); }
    for (i = 0; i < n && !code; i++) { u->after[i] = opd_keep(opd_clone(others[i])); }
    CHECK(u->nwant > 0);
    opd_graph_free(g);
    nunits++;
}
/* Of [4, 6] and [4]: the example's numbers are steps of 0.8, the run's of 1.2. */
static void add_traced(const char *name, opd_transform_fn fn, int code) {
    if (!check_walks(name)) { return; }
    OPD_SCOPED;
    opd_tensor *const in[2] = {numbers(4, 6, 0.8), numbers(4, -1, 0.8)};
    opd_tensor *const others[2] = {numbers(4, 6, 1.2), numbers(4, -1, 1.2)};
    add_function(name, fn, NULL, in, others, 2, 1e-5, code);
}
/* Whole numbers, none of which is NaN, and a result without elements. */
static int extremes_of_whole_numbers(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const x = opd_to_dtype(in[0], OPD_INT64);
    (void)user;
    (void)n;
    out[0] = opd_amax(x, OPD_INTS(1), false);
    out[1] = opd_maximum(opd_amin(x, OPD_INTS(0, 1), false), x);
    out[2] = opd_mul(opd_narrow(in[0], 0, 0, 0), opd_narrow(in[0], 0, 0, 0));
    out[3] = opd_isnan(x);
    return opd_max_dim(out + 4, x, 1, false) == 0 && out[3] ? 6 : -1;
}
/* As a bool, each element that is not 0 counts, before it is rounded. */
static int sums_as_bool(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const opd_value as_bool = opd_value_dtype(OPD_BOOL);
    opd_tensor *const x = opd_mul_Scalar(in[0], opd_value_double(0.01));
    (void)user;
    (void)n;
    out[0] = opd_sum_dim_full(x, OPD_INTS(1), false, as_bool);
    out[1] = opd_sum_full(x, as_bool);
    out[2] = opd_prod_dim_full(x, 0, false, as_bool);
    return out[2] ? 3 : -1;
}
TEST(small_graphs) {
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    add_traced("read_then_written", read_then_written, 0);
    add_traced("rows_that_do_not_fit", rows_that_do_not_fit, 0);
    add_traced("over_one_element", over_one_element, 0);
    add_traced("over_nothing", over_nothing, 0);
    add_traced("casts_that_do_not_fit", casts_that_do_not_fit, 0);
    add_traced("long_sums", long_sums, 0);
    add_traced("pools_of_the_least", pools_of_the_least, 0);
    add_traced("made_inside", made_inside, 0);
    add_traced("extremes_of_whole_numbers", extremes_of_whole_numbers, 0);
    add_traced("sums_as_bool", sums_as_bool, 0);
    add_traced("other_dtypes_of_memory", other_dtypes_of_memory, 0);
    check_warnings();
    run_units(UNIT_COMPILER, CHECKED);
    remove_folder();
}
/* Losses of targets, one of which is ignored, and their gradients. */
static int target_reduction;
static int losses_of_targets(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *pair[2], *weight, *const target = opd_remainder_Scalar(whole(in[1]), opd_value_int(6));
    opd_tensor *const image = opd_view(in[0], OPD_INTS(1, 6, 2, 2)), *const places = opd_view(target, OPD_INTS(1, 2, 2));
    int i, k = 0;
    (void)user;
    (void)n;
    for (i = 0; i < 2; i++) {
        weight = i ? opd_exp(opd_select(in[0], 0, 1)) : NULL;
        if (opd_nll_loss_forward(pair, in[0], target, weight, target_reduction, 2)) { return -1; }
        out[k++] = pair[0];
        out[k++] = pair[1];
        out[k++] = opd_nll_loss_backward(opd_exp(pair[0]), in[0], target, weight, target_reduction, 2, pair[1]);
        if (opd_nll_loss2d_forward(pair, image, places, weight, target_reduction, 2)) { return -1; }
        out[k++] = pair[0];
        out[k++] = opd_nll_loss2d_backward(opd_exp(pair[0]), image, places, weight, target_reduction, 2, pair[1]);
    }
    return opd_ok() ? k : -1;
}
/* Reads and writes at indices that count from either end. */
static int takes_and_puts(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const at = opd_sub_Scalar(opd_remainder_Scalar(whole(in[0]), opd_value_int(24)), opd_value_int(12));
    opd_tensor *const turned = opd_t(in[0]), *const cube = opd_view(in[0], OPD_INTS(1, 2, 3, 4));
    (void)user;
    (void)n;
    out[0] = opd_take(turned, at);
    out[1] = opd_put_full(turned, at, opd_exp(in[0]), false);
    out[2] = opd_put_full(in[0], at, opd_exp(in[0]), true);
    out[3] = opd_median(opd_neg(in[0]));
    out[4] = opd_embedding_dense_backward(opd_unsqueeze(in[0], 2), opd_remainder_Scalar(at, opd_value_int(5)), 5, 3, false);
    return opd_ok() && opd_max_pool3d_with_indices_full(out + 5, cube, OPD_INTS(2, 2, 3), OPD_INTS(1, 2, 2),
                                                        OPD_INTS(1, 1, 1), OPD_INTS(1, 2, 1), true) == 0 ? 7 : -1;
}
TEST(losses_and_places) {
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    for (target_reduction = 0; target_reduction < 3; target_reduction++) {
        add_traced("losses_of_targets", losses_of_targets, 0);
    }
    add_traced("takes_and_puts", takes_and_puts, 0);
    check_warnings();
    run_units(UNIT_COMPILER, CHECKED_HERE);
    remove_folder();
}
/* Special functions: of any number, of those from 0 to 1, and of what is near zeros of lgamma, by how near that is. */
static int special_functions(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const x = in[0], *const p = in[1];
    int i;
    (void)user;
    (void)n;
    out[0] = opd_lgamma(x);
    out[1] = opd_digamma(x);
    out[2] = opd_erfinv(opd_sub_Scalar(opd_mul_Scalar(p, opd_value_int(2)), opd_value_int(1)));
    out[3] = opd_special_ndtri(p);
    out[4] = opd_special_erfcx(x);
    out[5] = opd_special_log_ndtr(x);
    out[6] = opd_special_entr(p);
    out[7] = opd_special_xlog1py(x, x);
    out[8] = opd_i0(x);
    out[9] = opd_special_i0e(x);
    out[10] = opd_special_i1(x);
    out[11] = opd_special_i1e(x);
    for (i = 0; i < 12; i++) { out[i] = opd_asinh(out[i]); }
    out[12] = opd_mul_Scalar(opd_lgamma(in[2]), opd_value_double(1e7));
    return opd_ok() ? 13 : -1;
}
#if defined(__clang__) || defined(__GNUC__)
#define QUICK_MATH CHECKED_HERE " -O3 -fno-math-errno -fno-trapping-math"
#else
#define QUICK_MATH CHECKED
#endif
TEST(special_functions_as_the_operators_give_them) {
    static const double ends[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e-300, -1e-300, 1e-18, -1e-18, 8, -8, 171, 1e10,
                                  -2.0, -19.5, -20.5, 1e308, -1e16};
    static const double zeros[] = {-2.4570247382208006, -2.7476826467274127, -3.14358088834998, -3.955294284858598,
                                   -9.000002755, 1, 2};
    const int64_t count = 1500, near = 14, all[] = {sizeof ends / sizeof *ends};
    opd_tensor *in[3];
    int64_t i;
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    OPD_SCOPED;
    in[0] = opd_empty(opd_ints_of(&count, 1), OPD_FLOAT64);
    in[1] = opd_empty(opd_ints_of(&count, 1), OPD_FLOAT64);
    in[2] = opd_empty(opd_ints_of(&near, 1), OPD_FLOAT64);
    for (i = 0; i < count; i++) {
        opd_data_f64(in[0])[i] = i < all[0] ? ends[i] : (double)(i - 750) * 0.0427 + 1e-3;
        opd_data_f64(in[1])[i] = i < all[0] ? ends[i] : i < 300 ? pow(10.0, (double)-i) : (double)i / 1500;
    }
    for (i = 0; i < near; i++) { opd_data_f64(in[2])[i] = zeros[i / 2] + (i % 2 ? 1e-7 : -3e-6); }
    add_function("special functions", special_functions, NULL, in, in, 3, 1e-12, 0);
    for (i = 0; i < 2; i++) {
        opd_tensor *const x = opd_to_dtype(in[i], OPD_FLOAT32);
        in[i] = x;
    }
    add_function("special functions of floats", special_functions, NULL, in, in, 3, 1e-6, 0);
    check_warnings();
    run_units(UNIT_COMPILER, knows_this_machine() ? QUICK_MATH : CHECKED);
    remove_folder();
}
//-- scales and shifts of products ---------------------------------------------------------------------------------------

/* A product or convolution, and a norm of its channels behind it. */
typedef struct normed {
    const char *name;
    int channels, groups, kind;                   /* in and out are 12 and `channels`; kind: what is done besides */
    bool bias, plain, turned, folds;              /* plain: a norm without weights; turned: a transposed convolution */
    opd_scalar_type dtype;
    opd_tensor *weight, *shift, *norm[4];
} normed;
enum { NORMED_LAST, NORMED_TWICE, NORMED_SHOWN, NORMED_RELU, NORMED_ROWS, NORMED_NUMBERS, NORMED_FLAT };
static int run_normed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const normed *const u = (const normed *)user;
    const int64_t two[2] = {2, 1}, one[2] = {1, 1}, none[2] = {0, 0};
    opd_tensor *y, *z;
    (void)n;
    y = u->kind == NORMED_ROWS ? opd_linear(in[0], u->weight, u->shift)
        : opd_convolution(in[0], u->weight, u->shift, opd_ints_of(two, 2), opd_ints_of(one, 2), opd_ints_of(one, 2),
                          u->turned, opd_ints_of(none, 2), u->groups);
    z = opd_batch_norm(y, u->norm[0], u->norm[1], u->norm[2], u->norm[3], false, 0.1, u->kind == NORMED_FLAT ? 0 : 1e-5,
                       false);
    out[0] = u->kind == NORMED_TWICE ? opd_add(z, y) : u->kind == NORMED_RELU ? opd_relu(opd_add(z, in[1]))
        : u->kind == NORMED_NUMBERS ? opd_neg(opd_mul_Scalar(opd_add_Scalar(z, opd_value_double(0.25)),
                                                             opd_value_double(-3))) : z;
    out[1] = y;
    return out[0] && out[1] ? u->kind == NORMED_SHOWN ? 2 : 1 : -1;
}
static void make_normed(normed *u) {
    const int64_t c = u->channels, sizes[4] = {u->turned ? 12 : c, u->turned ? c / u->groups : 12 / u->groups, 3, 3};
    int i;
    u->weight = opd_keep(spread(u->dtype, sizes, u->kind == NORMED_ROWS ? 2 : 4, 1, false));
    u->shift = u->bias ? opd_keep(spread(u->dtype, &c, 1, 2, false)) : NULL;
    for (i = 0; i < 4; i++) { u->norm[i] = i < 2 && u->plain ? NULL : opd_keep(spread(u->dtype, &c, 1, 3 + i, i == 3)); }
    if (u->kind == NORMED_FLAT) { (void)opd_fill_(opd_select(u->norm[3], 0, 1), opd_value_double(0)); }
}
static void free_normed(normed *u) {
    int i;
    opd_release(u->weight);
    opd_release(u->shift);
    for (i = 0; i < 4; i++) { opd_release(u->norm[i]); }
}
/* Returns whether the C file computes square roots: a folded norm does not. */
static bool has_roots(const char *name) {
    char command[200];
    (void)snprintf(command, sizeof command, "grep -q 'sqrt' '%s/%s.c'", folder, name);
    return system(command) == 0;
}
static void add_normed(normed *n) {
    const int64_t images[4] = {2, 12, 7, 5}, rows[2] = {9, 12};
    opd_tensor *in[2][2], *want[2];
    int i;
    OPD_SCOPED;
    make_normed(n);
    for (i = 0; i < 2; i++) {                     /* the second input is like the result */
        in[i][0] = n->kind == NORMED_ROWS ? spread(n->dtype, rows, 2, i, false) : spread(n->dtype, images, 4, i, false);
        in[i][1] = opd_zeros(opd_ints_of(NULL, 0), n->dtype);
        CHECK(run_normed(n, in[i], 2, want) > 0);
        in[i][1] = opd_mul_Scalar(want[0], opd_value_double(-0.5));
    }
    add_function(n->name, run_normed, n, in[0], in[1], 2, n->dtype == OPD_FLOAT64 ? 1e-13 : 4e-6, 0);
    i = has_roots(units[nunits - 1].name);
    if (i == (int)n->folds) { printf("%s\n", n->name); }
    CHECK(i != (int)n->folds);
    free_normed(n);
}
TEST(norms_behind_products) {
    static normed all[] = {
        {"conv, norm", 8, 1, NORMED_LAST, true, false, false, true, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"conv without bias", 8, 1, NORMED_LAST, false, false, false, true, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"norm without weights", 8, 1, NORMED_LAST, true, true, false, true, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"groups", 8, 4, NORMED_LAST, true, false, false, true, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"a group for each", 12, 12, NORMED_RELU, false, false, false, true, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"residual", 8, 1, NORMED_RELU, false, false, false, true, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"numbers", 8, 1, NORMED_NUMBERS, false, false, false, true, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"transposed", 8, 2, NORMED_LAST, true, false, true, true, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"doubles", 8, 1, NORMED_LAST, true, false, false, true, OPD_FLOAT64, NULL, NULL, {NULL}},
        {"rows", 10, 1, NORMED_ROWS, true, false, false, true, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"read twice", 8, 1, NORMED_TWICE, true, false, false, false, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"a result, too", 8, 1, NORMED_SHOWN, true, false, false, false, OPD_FLOAT32, NULL, NULL, {NULL}},
        {"no variance", 8, 1, NORMED_FLAT, true, false, false, false, OPD_FLOAT32, NULL, NULL, {NULL}}};
    size_t i;
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    for (i = 0; i < sizeof all / sizeof *all; i++) { add_normed(&all[i]); }
    run_units(UNIT_COMPILER, CHECKED);
    remove_folder();
}
//-- sorting, cumulative sums, embedding bags ----------------------------------------------------------------------------

static opd_scalar_type order_dtype;
static int64_t order_dim;
static bool order_down;
/* Few different numbers, so that many are equal; of floats some are NaN, zeros of both signs, and infinite. */
static opd_tensor *to_sort(int64_t rows, int64_t columns, int seed) {
    const int64_t sizes[2] = {rows, columns};
    opd_tensor *const x = opd_empty(opd_ints_of(sizes, 2), OPD_FLOAT64);
    int64_t i;
    for (i = 0; x && i < rows * columns; i++) {
        const int64_t k = (i * 7919 + seed) % 23;
        opd_data_f64(x)[i] = (double)(k - 11);
        if (!opd_dtype_is_floating(order_dtype)) { opd_data_f64(x)[i] = (double)k; }
        else if (k == 3) { opd_data_f64(x)[i] = (double)NAN; }
        else if (k == 5) { opd_data_f64(x)[i] = -(double)INFINITY; }
        else if (k == 11 && i % 2) { opd_data_f64(x)[i] = -0.0; }
    }
    return opd_to_dtype(x, order_dtype);
}
static int sorts(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int rc = opd_sort_stable(out, in[0], opd_value_bool(true), order_dim, order_down) |
        opd_topk_full(out + 2, in[0], 3, order_dim, order_down, true);
    (void)user;
    (void)n;
    out[4] = opd_argsort(opd_mul_Scalar(in[0], opd_value_int(2)), order_dim, order_down);
    return rc == 0 && out[4] ? 5 : -1;
}
static int adds_up(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_cumsum(in[0], order_dim);
    out[1] = opd_mul_Scalar(opd_cumsum(opd_add(in[0], in[0]), order_dim), opd_value_int(2));
    out[2] = opd_cumsum(opd_cumsum(opd_t(in[0]), order_dim), 0);
    return out[2] ? 3 : -1;
}
static void add_order(opd_transform_fn fn, int64_t rows, int64_t columns, double tolerance) {
    opd_tensor *in[1], *others[1];
    char text[100];
    (void)snprintf(text, sizeof text, "order of %lld x %lld %s, dim %d", (long long)rows, (long long)columns,
                   opd_dtype_name(order_dtype), (int)order_dim);
    if (!check_compiles(text)) { return; }
    OPD_SCOPED;
    in[0] = to_sort(rows, columns, 1);
    if (fn == adds_up) {
        in[0] = opd_nan_to_num_full(in[0], opd_value_double(0.5), opd_value_double(2), opd_value_double(-3));
    }
    others[0] = fn == sorts ? to_sort(rows, columns, 7) : in[0];
    add_function(text, fn, NULL, in, others, 1, tolerance, 0);
}
TEST(orders) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_FLOAT16, OPD_INT64, OPD_INT32,
                                             OPD_INT16, OPD_INT8, OPD_UINT8};
    int i, k;
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    for (i = 0; i < (int)(sizeof dtypes / sizeof *dtypes); i++) {
        order_dtype = dtypes[i];
        for (k = 0; k < 4; k++) {
            order_dim = k % 2;
            order_down = k > 1;
            add_order(sorts, 5, i || k ? 9 : 700, 0);
            add_order(sorts, 70, 4, 0);
            if (k < 2) {
                const bool half = order_dtype == OPD_BFLOAT16 || order_dtype == OPD_FLOAT16;
                add_order(adds_up, 3, 5, half ? 2e-2 : 1e-6);
                add_order(adds_up, k ? 2 : 1, 9, half ? 2e-2 : 1e-6);
            }
        }
    }
    order_dtype = OPD_FLOAT32;
    order_dim = 1;
    add_order(adds_up, 2, 20000, 1e-6);
    run_units(UNIT_COMPILER, CHECKED);
    remove_folder();
}
static int bag_mode;
static opd_tensor *bag_table;
static int in_bags(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    if (bag_mode > 2) {                           /* 3: maxima; 4, 5, 6: of each kind without row 6, and a last offset */
        return opd_embedding_bag_padding_idx(out, bag_table, in[0], in[1], false, bag_mode == 3 ? 2 : 6 - bag_mode, false,
                                             bag_mode == 6 ? in[2] : NULL, bag_mode > 3,
                                             bag_mode == 3 ? opd_value_none() : opd_value_int(6)) == 0 ? 4 : -1;
    }
    return opd_embedding_bag_full(out, bag_table, in[0], in[1], false, bag_mode % 2, false,
                                  bag_mode == 2 ? in[2] : NULL, false) == 0 ? 4 : -1;
}
/* Of 9 indices in 4 bags; wrong: what is wrong with the numbers of the run. */
static void add_bags(opd_scalar_type dtype, opd_scalar_type index, int wrong) {
    static const double indices[9] = {1, 4, 0, 4, 2, 6, 6, 3, 5};
    static const double offsets[5][4] = {{0, 2, 2, 6}, {0, 3, 4, 8}, {1, 2, 3, 4}, {0, 5, 4, 8}, {0, 2, 4, 10}};
    const int64_t nine = 9, four = 4, table[2] = {7, 5};
    opd_tensor *in[2][3];
    char text[60];
    int i, k;
    (void)snprintf(text, sizeof text, "bags of %s, mode %d", opd_dtype_name(dtype), bag_mode);
    if (!wrong && !check_compiles(text)) { return; }
    OPD_SCOPED;
    bag_table = spread(dtype, table, 2, 3, false);
    if (bag_mode > 2) { (void)opd_fill_(opd_select(opd_select(bag_table, 0, 2), 0, 1), opd_value_double((double)NAN)); }
    bag_table = opd_keep(bag_table);
    for (k = 0; k < 2; k++) {
        opd_tensor *const at = opd_empty(opd_ints_of(&nine, 1), OPD_FLOAT64);
        opd_tensor *const from = opd_empty(opd_ints_of(&four, 1), OPD_FLOAT64);
        for (i = 0; i < 9; i++) { opd_data_f64(at)[i] = indices[k ? 8 - i : i]; }
        for (i = 0; i < 4; i++) { opd_data_f64(from)[i] = offsets[k ? (wrong && wrong < 4 ? wrong + 1 : 1) : 0][i]; }
        if (k && wrong == 4) { opd_data_f64(at)[3] = 7; }
        in[k][0] = opd_to_dtype(at, index);
        in[k][1] = opd_to_dtype(from, index);
        in[k][2] = spread(dtype, &nine, 1, 5 + k, false);
    }
    add_function(text, in_bags, NULL, in[0], in[1], 3, dtype == OPD_FLOAT64 ? 1e-12 : dtype == OPD_FLOAT32 ? 1e-6 : 2e-2,
                 wrong ? 1 : 0);
    opd_release(bag_table);
}
TEST(bags) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_FLOAT16};
    int i;
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    for (bag_mode = 0; bag_mode < 7; bag_mode++) {
        for (i = 0; i < 4; i++) { add_bags(dtypes[i], i % 2 ? OPD_INT32 : OPD_INT64, 0); }
    }
    bag_mode = 0;
    for (i = 1; i <= 4; i++) { add_bags(OPD_FLOAT32, OPD_INT64, i); }
    run_units(UNIT_COMPILER, CHECKED);
    remove_folder();
}
/* For an error of a run, the C function returns a number. */
TEST(errors_of_runs) {
    if (!have_compiler()) { SKIP("no cc"); }
    CHECK_OR_RETURN(new_folder() != NULL);
    add_traced("divides", divides, 2);
    add_traced("has_remainders", has_remainders, 2);
    add_traced("reads_rows", reads_rows, 1);
    add_traced("selects_rows", selects_rows, 1);
    run_units(UNIT_COMPILER, CHECKED);
    remove_folder();
}

//-- refused calls ------------------------------------------------------------------------------------------------------

static int doubled(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_add(in[0], in[0]);
    return out[0] ? 1 : -1;
}
static int most_frequent(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = OPD_CALL(opd_find("aten::mode"), in[0]);
    return out[0] ? 1 : -1;
}
TEST(bad_arguments_and_operators_without_a_form_in_c) {
    static const char *const names[] = {"", "7up", "a-b", "a/b", "a name of many letters that is too long for C, and no name",
                                        "int", "class", "vector", "sinf", "main", "k0_add", "tile1_f32", "uint8_t"};
    const int64_t sizes[] = {2, 3};
    opd_tensor *x = opd_ones(opd_ints_of(sizes, 2), OPD_FLOAT32), *half = opd_to_dtype(x, OPD_FLOAT16);
    opd_graph *const g = opd_graph_trace(doubled, NULL, &x, 1, NULL), *const s = opd_graph_trace(most_frequent, NULL, &x, 1, NULL);
    opd_c_options o;
    int i;
    memset(&o, 0, sizeof o);
    CHECK_OR_RETURN(g && s && new_folder());
    for (i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        o.name = names[i];
        CHECK_INT(opd_graph_write_c(g, &x, 1, folder, &o), -1);
        CHECK(strstr(opd_error_message(), "name") != NULL);
        opd_error_clear();
    }
    CHECK_INT(opd_graph_write_c(NULL, &x, 1, folder, NULL), -1);
    opd_error_clear();
    CHECK_INT(opd_graph_write_c(g, &x, 0, folder, NULL), -1);
    opd_error_clear();
    CHECK_INT(opd_graph_write_c(g, &x, 1, "/no/such/folder", NULL), -1);
    CHECK(strstr(opd_error_message(), "/no/such/folder") != NULL);
    opd_error_clear();
    CHECK_INT(opd_graph_write_c(s, &x, 1, folder, NULL), -1);
    CHECK(strstr(opd_error_message(), "aten::mode") != NULL);
    opd_error_clear();
    CHECK_INT(opd_graph_write_c(g, &half, 1, folder, NULL), 0);     /* and works again afterwards */
    CHECK_INT(opd_graph_run(g, &x, 1, &x, 1), 1);
    opd_graph_free(g);
    opd_graph_free(s);
    remove_folder();
}
static int drawn(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int kind = *(const int *)user;
    const int64_t three = 3;
    (void)n;
    if (kind == 0) {
        out[0] = opd_dropout(in[0], 0.5, true);
    } else if (kind == 1) {
        out[0] = opd_add(in[0], opd_rand(opd_ints_of(NULL, 0), OPD_FLOAT32));
    } else if (kind == 2) {
        out[0] = opd_rand(opd_ints_of(&three, 1), OPD_FLOAT32);
    } else {
        out[0] = opd_rand_like(in[0]);
    }
    return out[0] ? 1 : -1;
}
TEST(draws_are_refused) {
    int kind;
    CHECK_OR_RETURN(new_folder() != NULL);
    for (kind = 0; kind < 4; kind++) {
        opd_tensor *x = numbers(2, 3, 1), *out[1];
        opd_graph *const g = opd_graph_trace(drawn, &kind, &x, 1, NULL);
        CHECK_OR_RETURN(g != NULL);
        CHECK_INT(opd_graph_write_c(g, &x, 1, folder, NULL), -1);
        CHECK(strstr(opd_error_message(), "random") != NULL);
        opd_error_clear();
        CHECK_INT(opd_graph_run(g, &x, 1, out, 1), 1);
        opd_graph_free(g);
    }
    remove_folder();
}
/* Each allocation fails once: then there is an error, and no memory is lost. */
static int rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t one = 1;
    (void)user;
    (void)n;
    out[0] = opd_softmax(opd_matmul(in[0], opd_transpose(in[0], 0, 1)), 1);
    out[1] = opd_mean_dim(opd_exp(in[0]), opd_ints_of(&one, 1), false);
    return out[0] && out[1] ? 2 : -1;
}
static int write_rows(void *arg) { return opd_graph_write_c((opd_graph *)arg, units[0].inputs, 1, folder, NULL); }
static int write_open_rows(void *arg) {
    const int open = 0;
    opd_c_options o;
    memset(&o, 0, sizeof o);
    o.open = &open;
    o.least = 1;
    o.most = 9;
    return opd_graph_write_c((opd_graph *)arg, units[0].inputs, 1, folder, &o);
}
TEST(allocations_that_fail) {
    const int64_t sizes[] = {4, 3};
    units[0].inputs[0] = opd_ones(opd_ints_of(sizes, 2), OPD_FLOAT32);
    opd_graph *g = opd_graph_trace(rows, NULL, units[0].inputs, 1, NULL);
    CHECK_OR_RETURN(g && new_folder());
    CHECK_INT(write_rows(g), 0);                  /* the device is there from now on */
    check_allocations(write_rows, g, "opd_graph_write_c", 300, false);
    opd_graph_free(g);
    g = opd_graph_trace(doubled, NULL, units[0].inputs, 1, NULL);
    CHECK_OR_RETURN(g != NULL);
    CHECK_INT(write_open_rows(g), 0);
    check_allocations(write_open_rows, g, "an open size", 100, false);
    opd_graph_free(g);
    remove_folder();
}
CHECK_MAIN_WALKS()
