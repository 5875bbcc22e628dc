/* Registration in every order.  The computed tables equal PyTorch's and those of a second implementation in this
   file.  Also every order of registering and undoing, failing steps, and tags, listeners and C functions of
   definitions. */
#include "../../opdispatch.h"
#include "../check.h"

//-- helpers -----------------------------------------------------------------------------------------------------------

static int k_first(opd_call *call) { return opd_return_value(call, opd_arg_value(call, 0)); }
static int k_twice(opd_call *call) { return opd_return_tensor(call, opd_add(opd_arg_tensor(call, 0), opd_arg_tensor(call, 0))); }
static int k_second(opd_call *call) { return opd_return_value(call, opd_arg_value(call, 0)); }

static opd_library *lib_new(opd_library_kind kind, const char *ns, const char *key, const char *file, int line) {
    opd_library *lib = opd_library_open(kind, ns, key, file, line);
    CHECK(lib != NULL);
    return lib;
}

static int warnings;
static char warned[2048];
static void count_warning(void *user, int is_error, const char *text) {
    (void)user;
    if (is_error) { return; }
    warnings++;
    (void)snprintf(warned, sizeof warned, "%s", text);
}

/* This is the first case, because the warning is given only once per process. */
TEST(override_is_said_once) {
    opd_library *d = lib_new(OPD_DEF, "over", NULL, "d.c", 1), *a, *b, *c, *m[2];
    static int before = -1;
    warnings = 0;
    opd_log_set(count_warning, NULL);
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    m[0] = lib_new(OPD_IMPL, "over", "Meta", "m.c", 1);
    m[1] = lib_new(OPD_IMPL, "over", "Meta", "m.c", 2);
    CHECK_INT(opd_impl(m[0], "op", k_first), 0);
    CHECK_INT(opd_impl(m[1], "op", k_second), 0);
    CHECK_INT(warnings, 0);                       /* at Meta it is expected */
    a = lib_new(OPD_IMPL, "over", "CPU", "a.c", 3);
    b = lib_new(OPD_IMPL, "over", "CPU", "b.c", 4);
    c = lib_new(OPD_IMPL, "over", "CPU", "c.c", 5);
    CHECK_INT(opd_impl(a, "op", k_first), 0);
    CHECK_INT(warnings, 0);
    CHECK_INT(opd_impl(b, "op", k_second), 0);
    if (before < 0) {
        CHECK_INT(warnings, 1);
        CHECK(strstr(warned, "Overriding a previously registered kernel for the same operator and the same dispatch "
                     "key"));
        CHECK(strstr(warned, "operator: over::op") && strstr(warned, "dispatch key: CPU"));
        CHECK(strstr(warned, "previous kernel: registered at a.c:3") && strstr(warned,
              "new kernel: registered at b.c:4"));
    }
    before = warnings;
    CHECK_INT(opd_impl(c, "op", k_first), 0);
    CHECK_INT(warnings, before);
    opd_log_set(NULL, NULL);
    opd_library_close(b);
    opd_library_close(m[1]);
    opd_library_close(m[0]);
    opd_library_close(c);
    opd_library_close(a);
    opd_library_close(d);
}

static size_t state_of(opd_op *op, char *text, size_t cap) {
    size_t n = opd_dump(op, text, cap);
    if (opd_op_schema(op) && n < cap) { n += opd_dump_table(op, text + n, cap - n); }
    return n;
}

//-- a kernel of a built-in operator is replaced -----------------------------------------------------------------------

static int k_seven(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out = opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));
    float *o = opd_data_f32(out);
    if (!o) { return -1; }
    *o = 7;
    return opd_return_tensor(call, out);
}
/* Overrides an operator that was not used yet, so its built-in kernels are not registered. */
static void override_one(const char *name) {
    const float one = 1;
    opd_tensor *x = opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32);
    const opd_value v = opd_value_tensor(x);
    opd_library *lib = lib_new(OPD_IMPL, "aten", "CPU", "mine.c", 1);
    static char before[40000], after[40000];
    opd_op *op;
    double was;
    CHECK_INT(opd_impl(lib, name, k_seven), 0);
    (void)snprintf(after, sizeof after, "aten::%s", name);
    op = opd_find(after);
    CHECK_NEAR(opd_item_f64(opd_call_op(op, &v, 1)), 7, 0);
    CHECK_INT(opd_check_invariants(), 0);
    opd_library_close(lib);
    was = opd_item_f64(opd_call_op(op, &v, 1));
    CHECK(was > 7 || was < 7);
    (void)state_of(op, before, sizeof before);
    lib = lib_new(OPD_IMPL, "_", "CPU", "mine.c", 2);
    (void)snprintf(after, sizeof after, "aten::%s", name);
    CHECK_INT(opd_impl(lib, after, k_seven), 0);
    CHECK_NEAR(opd_item_f64(opd_call_op(op, &v, 1)), 7, 0);
    (void)state_of(op, after, sizeof after);
    CHECK(strstr(after, "CPU: registered at mine.c:2") != NULL && strstr(after, "CPU (inactive): ") != NULL);
    opd_library_close(lib);
    CHECK_NEAR(opd_item_f64(opd_call_op(op, &v, 1)), was, 0);
    (void)state_of(op, after, sizeof after);
    CHECK_STR(after, before);
    CHECK_OK();
}
TEST(replaced_kernel_of_a_built_in_operator) {
    override_one("cosh");
    override_one("exp");
}

//-- "c kernel": who has this key in a dump of a table, and why --------------------------------------------------------

static const char *slot_of(const char *dump, const char *key, char *out, size_t cap) {
    const char *p = dump, *at, *tag, *end;
    const size_t n = strlen(key);
    while (p && *p && !(strncmp(p, key, n) == 0 && p[n] == ':' && p[n + 1] == ' ')) {
        p = strchr(p, '\n');
        if (p) { p++; }
    }
    if (!p || !*p) { (void)snprintf(out, cap, "missing"); return out; }
    end = strchr(p, '\n');
    at = strstr(p, "registered at ");
    tag = strchr(p, '[');
    if (!tag || (end && tag > end)) { (void)snprintf(out, cap, "?"); return out; }
    if (strncmp(tag, "[backend fallback]", 18) == 0) { (void)snprintf(out, cap, "fallback"); }
    else if (!at || at > tag) { (void)snprintf(out, cap, "%.*s", (int)strcspn(tag + 1, "]"), tag + 1); }
    else { (void)snprintf(out, cap, "%c %.*s", at[14], (int)strcspn(tag + 1, "]"), tag + 1); }
    return out;
}

//-- PyTorch's own tables ----------------------------------------------------------------------------------------------

static void golden_line(char *line, char *const *slots, int nslots) {
    static char dump[40000];
    char got[128], *want = strchr(line, '|'), *p, *regs[8][2];
    opd_library *libs[8], *d;
    int n = 0, i, turn;
    *want++ = 0;
    for (p = strtok(line, " "); p && n < 8; p = strtok(NULL, " ")) { regs[n][0] = p; p[1] = 0; regs[n++][1] = p + 2; }
    for (i = 0, p = strtok(want, ","); p; p = strtok(NULL, ",")) { i++; }       /* leaves a zero after each */
    CHECK_INT(i, nslots);
    for (turn = 0; turn < 2; turn++) {
        d = lib_new(OPD_FRAGMENT, "golden", NULL, "D", 1);
        CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
        for (i = 0; i < n; i++) {
            const int k = turn ? n - 1 - i : i;
            libs[k] = lib_new(OPD_IMPL, "golden", *regs[k][1] ? regs[k][1] : NULL, regs[k][0], 1);
            CHECK_INT(opd_impl(libs[k], "op", k_first), 0);
        }
        (void)opd_dump_table(opd_find("golden::op"), dump, sizeof dump);
        for (i = 0, p = want; i < nslots; i++, p += strlen(p) + 1) {
            (void)slot_of(dump, slots[i], got, sizeof got);
            /* our "no formula" fallback is at every autograd key, PyTorch's not at this one */
            if (strcmp(slots[i], "AutogradNestedTensor") == 0 && strcmp(got, "fallback") == 0) { (void)snprintf(got,
                sizeof got, "missing"); }
            if (strcmp(got, p) != 0) { printf("%s with %s=%s...:\n", slots[i], regs[0][0], regs[0][1]); }
            CHECK_STR(got, p);
        }
        for (i = 0; i < n; i++) { opd_library_close(libs[i]); }
        opd_library_close(d);
    }
}

TEST(tables_of_pytorch) {
    static char line[4096], head[4096];
    char *slots[64], *p;
    int nslots = 0, lines = 0;
    FILE *f = check_golden("dispatch.txt");
    CHECK_OR_RETURN(f != NULL);
    CHECK_OR_RETURN(fgets(head, sizeof head, f) != NULL);
    memset(slots, 0, sizeof slots);
    head[strcspn(head, "\n")] = 0;
    p = strchr(head, ':') + 1;
    for (p = strtok(p, " "); p; p = strtok(NULL, " ")) { slots[nslots++] = p; }
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        golden_line(line, slots, nslots);
        lines++;
    }
    (void)fclose(f);
    CHECK_INT(lines, 400);
    CHECK_OK();
}

//-- an evaluator of our own -------------------------------------------------------------------------------------------
//
//  Written from the rules as they are told (map 2.6 and 2.7), with nothing of the library: a slot knows the keys whose
//  kernels make the autograd slot above them "have a backend kernel".

enum { IMPLICIT = 1, EXPLICIT = 2, NONFUNCTIONAL = 4, NESTED = 8, AUTOGRAD = 16, DECOMPOSED = 32 };
typedef struct key_rule { const char *name; int covered; const char *above; bool fallback; } key_rule;
#define BACKEND (IMPLICIT | EXPLICIT | NONFUNCTIONAL)
static const key_rule rules[] = {
    {"Undefined", BACKEND, "", false}, {"CPU", BACKEND, "AutogradCPU", false}, {"CUDA", BACKEND, "AutogradCUDA", false},
    {"XLA", IMPLICIT | EXPLICIT, "AutogradXLA", false}, {"Lazy", IMPLICIT | EXPLICIT, "AutogradLazy", false},
    {"Meta", BACKEND, "AutogradMeta", false}, {"PrivateUse1", BACKEND, "AutogradPrivateUse1", false},
    {"SparseCPU", IMPLICIT | EXPLICIT, "AutogradOther", false}, {"QuantizedCPU", BACKEND, "AutogradOther", false},
    {"SparseCsrCUDA", BACKEND, "AutogradOther", false}, {"NestedTensorCPU", IMPLICIT | NESTED,
        "AutogradNestedTensor", false},
    {"FPGA", BACKEND, "AutogradOther", false}, {"MkldnnCPU", BACKEND, "AutogradOther", false},
    {"AutogradOther", AUTOGRAD | IMPLICIT, "", true}, {"AutogradCPU", AUTOGRAD | IMPLICIT, "", true},
    {"AutogradCUDA", AUTOGRAD | IMPLICIT, "", true}, {"AutogradXLA", AUTOGRAD | IMPLICIT, "", true},
    {"AutogradMeta", AUTOGRAD | IMPLICIT, "", true}, {"AutogradNestedTensor", AUTOGRAD | IMPLICIT | NESTED, "", true},
    {"Functionalize", IMPLICIT, "", false}, {"FuncTorchBatched", DECOMPOSED, "", true}, {"Tracer", 0, "", true},
    {"BackendSelect", 0, "", true}, {"ADInplaceOrView", 0, "", true}, {"Conjugate", 0, "", true},
    {"Negative", 0, "", true}, {"ZeroTensor", 0, "", false},
};
#define RULES ((int)(sizeof rules / sizeof rules[0]))
static const char *const alias_names[] = {"Autograd", "CompositeImplicitAutograd", "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutogradNestedTensor", "FuncTorchBatchedDecomposition"};
#define ALIASES ((int)(sizeof alias_names / sizeof alias_names[0]))

/* A step: a kernel at a key, or with fallback a fallback there; place is its letter. */
typedef struct step { char letter[2]; const char *key; bool fallback; } step;
typedef struct steps { int n; step s[6]; } steps;

/* Returns the letter of the kernel at a key among the active steps, or 0. */
static char at_key(const steps *all, int alive, const char *key, bool fallback) {
    int i;
    for (i = 0; i < all->n; i++) {
        if ((alive >> i & 1) && all->s[i].fallback == fallback && strcmp(all->s[i].key, key) == 0) {
            return all->s[i].letter[0]; }
    }
    return 0;
}
static const char *expected(const steps *all, int alive, const key_rule *r, char *out, size_t cap) {
    const bool undefined = strcmp(r->name, "Undefined") == 0;
    const char implicit = at_key(all, alive, "CompositeImplicitAutograd", false);
    bool has_backend = at_key(all, alive, "CompositeExplicitAutograd", false) != 0, other = false;
    char c;
    int i;
    for (i = 0; i < RULES; i++) {
        if (!at_key(all, alive, rules[i].name, false)) { continue; }
        if (*rules[i].above && strcmp(rules[i].above, r->name) == 0) { has_backend = true; }
        if (strcmp(rules[i].above, "AutogradOther") == 0) { other = true; }
    }
#define CHOOSE(letter, tag) do { (void)snprintf(out, cap, "%c %s", letter, tag); return out; } while (0)
    if ((c = at_key(all, alive, r->name, false)) != 0) { CHOOSE(c, "kernel"); }
    c = at_key(all, alive, "CompositeExplicitAutogradNonFunctional", false);
    if (c && (r->covered & NONFUNCTIONAL)) { CHOOSE(c, "default backend kernel"); }
    c = at_key(all, alive, "CompositeExplicitAutograd", false);
    if (c && (r->covered & EXPLICIT)) { CHOOSE(c, "default backend kernel"); }
    c = at_key(all, alive, "CompositeImplicitAutogradNestedTensor", false);
    if (c && !undefined && (r->covered & NESTED)) { CHOOSE(c, "nested kernel"); }
    if (implicit && (r->covered & IMPLICIT)) {
        if (strcmp(r->name, "AutogradOther") == 0 && other) { (void)snprintf(out, cap, "ambiguous autogradother");
            return out; }
        if (!has_backend) { CHOOSE(implicit, "math kernel"); }
    }
    c = at_key(all, alive, "Autograd", false);
    if (c && (r->covered & AUTOGRAD)) { CHOOSE(c, "autograd kernel"); }
    c = at_key(all, alive, "FuncTorchBatchedDecomposition", false);
    if (c && (r->covered & DECOMPOSED)) { CHOOSE(c, "batched kernel"); }
    (void)snprintf(out, cap, "%s", r->fallback || at_key(all, alive, r->name, true) ? "fallback" : "missing");
    return out;
}

//-- every order -------------------------------------------------------------------------------------------------------

/* Makes step i; step 0 is the definition. */
static opd_library *step_take(const steps *all, int i) {
    opd_library *lib;
    if (i == 0) {
        lib = lib_new(OPD_FRAGMENT, "perm", NULL, all->s[0].letter, 1);
        CHECK_INT(opd_def(lib, "op(Tensor x) -> Tensor"), 0);
    } else if (all->s[i].fallback) {
        lib = lib_new(OPD_IMPL, "_", all->s[i].key, all->s[i].letter, 1);
        CHECK_INT(opd_fallback(lib, k_second), 0);
    } else {
        lib = lib_new(OPD_IMPL, "perm", all->s[i].key, all->s[i].letter, 1);
        CHECK_INT(opd_impl(lib, "op", k_first), 0);
    }
    return lib;
}

/* Registrations that are refused; each must leave everything as it was. */
static void failing_steps(opd_op *op, bool defined, int which) {
    static char before[40000], after[40000];
    opd_library *lib = opd_library_open(which % 3 ? OPD_FRAGMENT : OPD_IMPL, "perm", NULL, "F", 9), *all;
    const opd_registry_info info = opd_registry_stats();
    int rc;
    (void)state_of(op, before, sizeof before);
    switch (which) {
    case 0: rc = opd_impl_key(lib, "op", "NoSuchKey", k_first, NULL, NULL); break;
    case 1: rc = defined ? opd_def(lib, "op(int x) -> int") : opd_def(lib, "op(int x -> int"); break;
    case 2: rc = opd_impl(lib, "op(Tensor x) -> Tensor", k_first); break;
    case 3: rc = opd_def(lib, "op(Tensor x) -> Tensor"); break;              /* not in an IMPL library */
    case 4: rc = opd_impl(lib, "other::op", k_first); break;
    default:
        all = opd_library_open(OPD_IMPL, "_", "Autograd", "F", 9);           /* every one of its keys has a fallback */
        rc = opd_fallback(all, k_first);
        opd_error_clear();
        opd_library_close(all);
    }
    CHECK_INT(rc, -1);
    opd_error_clear();
    (void)state_of(op, after, sizeof after);
    CHECK(strcmp(before, after) == 0);
    CHECK_INT(opd_registry_stats().kernels, info.kernels);
    CHECK_INT(opd_registry_stats().fallbacks, info.fallbacks);
    opd_library_close(lib);
}

#define SUBSETS 64
static char *subset_text[SUBSETS];
static void subset_check(const steps *all, opd_op *op, int alive, int which) {
    static char text[40000];
    char want[128], got[128];
    int i;
    (void)state_of(op, text, sizeof text);
    if (!subset_text[alive]) {
        subset_text[alive] = (char *)malloc(strlen(text) + 1);
        CHECK_OR_RETURN(subset_text[alive] != NULL);
        strcpy(subset_text[alive], text);
        for (i = 0; (alive & 1) && i < RULES; i++) {
            (void)slot_of(text + opd_dump(op, NULL, 0), rules[i].name, got, sizeof got);
            if (strcmp(got, expected(all, alive, &rules[i], want, sizeof want)) != 0) { printf("%s:\n",
                rules[i].name); }
            CHECK_STR(got, want);
        }
    } else { CHECK(strcmp(subset_text[alive], text) == 0); }
    if (alive & 1) {                              /* a call publishes the table, which the next check looks at */
        const opd_value none = opd_value_none();
        (void)opd_call_all(op, NULL, &none, 0);   /* lacks its argument */
        opd_error_clear();
    }
    CHECK_INT(opd_check_invariants(), 0);
    failing_steps(op, (alive & 1) != 0, which % 6);
}

static void permutation(int n, int k, int *out) {
    int left[8], i, j;
    for (i = 0; i < n; i++) { left[i] = i; }
    for (i = n; i > 0; i--) {
        const int at = k % i;
        k /= i;
        out[n - i] = left[at];
        for (j = at; j + 1 < i; j++) { left[j] = left[j + 1]; }
    }
}

/* n! orders of registering by n! of undoing; with stride, every so-manieth of the latter. */
static void every_order(const steps *all, int stride) {
    int orders = 1, up, down, i, a[8], b[8], which = 0;
    opd_library *libs[8], *first = step_take(all, 0);
    opd_op *op = opd_find("perm::op");
    opd_library_close(first);
    for (i = 0; i < SUBSETS; i++) { free(subset_text[i]); subset_text[i] = NULL; }
    for (i = 2; i <= all->n; i++) { orders *= i; }
    for (up = 0; up < orders; up++) {
        for (down = up % stride; down < orders; down += stride) {
            int alive = 0;
            permutation(all->n, up, a);
            permutation(all->n, down, b);
            for (i = 0; i < all->n; i++) {
                libs[a[i]] = step_take(all, a[i]);
                alive |= 1 << a[i];
                subset_check(all, op, alive, which++);
            }
            for (i = 0; i < all->n; i++) {
                opd_library_close(libs[b[i]]);
                alive &= ~(1 << b[i]);
                subset_check(all, op, alive, which++);
            }
        }
    }
    for (i = 0; i < SUBSETS; i++) { free(subset_text[i]); subset_text[i] = NULL; }
}

/* A set of n steps at different random keys; fallbacks only at keys without one. */
static uint64_t random_state;
static int random_below(int n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)n);
}
static void random_steps(steps *all, int n) {
    int i, j;
    memset(all, 0, sizeof *all);
    all->n = n;
    all->s[0].letter[0] = 'D';
    all->s[0].key = "";
    for (i = 1; i < n; ) {
        step *s = &all->s[i];
        const int r = random_below(RULES + 2 * ALIASES + 4), rule = r < RULES ? r : random_below(RULES);
        const bool alias = r >= RULES && r < RULES + 2 * ALIASES;
        s->letter[0] = (char)('a' + i);
        s->fallback = r >= RULES + 2 * ALIASES;
        s->key = alias ? alias_names[(r - RULES) / 2] : rules[rule].name;
        if (!alias && (rule == 0 || (s->fallback && rules[rule].fallback))) { continue; }
        for (j = 1; j < i && !(all->s[j].fallback == s->fallback && strcmp(all->s[j].key, s->key) == 0); j++) { }
        if (j == i) { i++; }
    }
}

TEST(random_sets_in_every_order) {
    int set;
    random_state = 1;
    for (set = 0; set < 12; set++) {
        steps all;
        random_steps(&all, 4);
        every_order(&all, 5);
    }
    CHECK_OK();
}
TEST(random_larger_sets) {
    int set;
    random_state = 2;
    for (set = 0; set < 4; set++) {
        steps all;
        random_steps(&all, 5);
        every_order(&all, 97);
    }
    CHECK_OK();
}
/* Many random sets of registrations, each in one order: the tables equal those of the second implementation. */
TEST(random_sets_against_the_evaluator) {
    static char text[40000];
    int set, i;
    random_state = 3;
    for (set = 0; set < 1500; set++) {
        opd_library *libs[6];
        char want[128], got[128];
        steps all;
        random_steps(&all, 2 + set % 5);
        for (i = 0; i < all.n; i++) { libs[i] = step_take(&all, i); }
        (void)opd_dump_table(opd_find("perm::op"), text, sizeof text);
        for (i = 0; i < RULES; i++) {
            (void)expected(&all, (1 << all.n) - 1, &rules[i], want, sizeof want);
            if (strcmp(slot_of(text, rules[i].name, got, sizeof got), want) != 0) { printf("set %d %s:\n", set,
                rules[i].name); }
            CHECK_STR(got, want);
        }
        for (i = 0; i < all.n; i++) { opd_library_close(libs[(i + set) % all.n]); }
    }
    CHECK_OK();
}

//-- tags, listeners and functions of a definition ---------------------------------------------------------------------

TEST(places_and_alias_kinds_in_dumps) {
    static const char *const kinds[] = {"FROM_SCHEMA", "CONSERVATIVE", "PURE_FUNCTION", "INTERNAL_SPECIAL_CASE"};
    opd_library *d = lib_new(OPD_DEF, "place", NULL, "lib.c", 7);
    opd_def_options options;
    char name[32], dump[2048], want[64];
    int i;
    memset(&options, 0, sizeof options);
    for (i = 0; i < 4; i++) {
        options.alias = (opd_alias_kind)i;
        (void)snprintf(name, sizeof name, "op%d(Tensor x) -> Tensor", i);
        if (i == 1) { opd_library_at(d, "made.def", 31); }
        if (i == 2) { opd_library_at(d, "made by hand", 0); }
        CHECK_INT(opd_def_with(d, name, &options), 0);
        *strchr(name, '(') = 0;
        CHECK_INT(opd_impl_key(d, name, "CPU", k_first, NULL, NULL), 0);
        (void)snprintf(want, sizeof want, "place::%s", name);
        (void)opd_dump(opd_find(want), dump, sizeof dump);
        (void)snprintf(want, sizeof want, "alias analysis kind: %s\n", kinds[i]);
        CHECK(strstr(dump, want) != NULL);
        CHECK(strstr(dump, i == 0 ? "debug: registered at lib.c:7\n" : i == 1 ? "debug: registered at made.def:31\n"
                     : "debug: made by hand\n") != NULL);
        CHECK(strstr(dump, i == 0 ? "CPU: registered at lib.c:7 :: (none) [ boxed ]\n" : i == 1
                     ? "CPU: registered at made.def:31 :: (none) [ boxed ]\n"
                     : "CPU: made by hand :: (none) [ boxed ]\n") != NULL);
    }
    CHECK_INT(opd_def(d, "op0(Tensor x) -> Tensor"), -1);
    CHECK(strstr(opd_error_message(),
          "Duplicate registration: made by hand. Original registration: registered at lib.c:7") != NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "(Error occurred while processing OPD_LIBRARY block at lib.c:7)");
    opd_library_close(d);
}

TEST(what_is_no_library_and_no_alias_kind) {
    opd_library *lib = lib_new(OPD_DEF, "odd", NULL, "a.c", 1);
    opd_def_options options;
    memset(&options, 0, sizeof options);
    options.alias = (opd_alias_kind)4;
    CHECK_INT(opd_def_with(lib, "op() -> ()", &options), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "opd_def(\"op() -> ()\"): 4 is not an alias kind");
    CHECK(!opd_find_quiet("odd::op"));
    opd_library_at(NULL, "a.c", 2);
    CHECK_ERROR(OPD_ERROR_REGISTER, "opd_library_at: the library is NULL");
    opd_library_close(lib);
    opd_library_at(lib, "a.c", 3);
    CHECK_ERROR(OPD_ERROR_REGISTER, "opd_library_at: the library is closed");
}
TEST(identical_second_definitions) {
    opd_library *a = lib_new(OPD_FRAGMENT, "again", NULL, "a.c", 1), *b = lib_new(OPD_FRAGMENT, "again", NULL, "b.c",
                             2);
    opd_library *c = lib_new(OPD_FRAGMENT, "again", NULL, "c.c", 3);
    opd_def_options same;
    char dump[2048];
    opd_op *op;
    memset(&same, 0, sizeof same);
    same.same_again = 1;
    same.tags = OPD_OPTAG_CORE;
    CHECK_INT(opd_def_with(a, "op(Tensor x) -> Tensor", &same), 0);
    op = opd_find("again::op");
    CHECK_INT(opd_op_tags(op), OPD_OPTAG_CORE);
    same.tags = 0;
    CHECK_INT(opd_def_with(b, "op(Tensor x) -> Tensor", &same), 0);
    CHECK_INT(opd_def(c, "op(Tensor x) -> Tensor"), -1);                     /* not without the option */
    CHECK_ERROR(OPD_ERROR_REGISTER,
                "Duplicate registration: registered at c.c:3. Original registration: registered at a.c:1");
    CHECK_INT(opd_def_with(c, "op(Tensor y) -> Tensor", &same), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "multiple times");
    same.alias = OPD_ALIAS_CONSERVATIVE;
    CHECK_INT(opd_def_with(c, "op(Tensor x) -> Tensor", &same), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "multiple times");
    opd_library_close(c);
    opd_library_close(a);                         /* the operator stays, and is now b's */
    CHECK(opd_find("again::op") == op);
    (void)opd_dump(op, dump, sizeof dump);
    CHECK(strstr(dump, "debug: registered at b.c:2\n") != NULL);
    CHECK_INT(opd_op_tags(op), 0);
    opd_library_close(b);
    CHECK(opd_find_quiet("again::op") == NULL);
    CHECK_INT(opd_check_invariants(), 0);
}

TEST(cards_may_be_defined_again) {
    opd_library *a = lib_new(OPD_FRAGMENT, "again", NULL, "a.c", 1), *b = lib_new(OPD_FRAGMENT, "again", NULL, "b.c",
                             2);
    opd_op_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.schema = "card(Tensor self) -> Tensor";
    desc.cpu = k_first;
    desc.out = "card.out";
    desc.inplace = "card_";
    desc.tags = OPD_OPTAG_POINTWISE | OPD_OPTAG_CORE;
    CHECK_INT(opd_define(a, &desc), 0);
    CHECK_INT(opd_define(b, &desc), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "multiple times");
    desc.same_again = 1;
    CHECK_INT(opd_define(b, &desc), 0);
    CHECK_INT(opd_op_tags(opd_find("again::card")), OPD_OPTAG_POINTWISE | OPD_OPTAG_CORE);
    CHECK_INT(opd_op_tags(opd_find("again::card_")), OPD_OPTAG_POINTWISE);
    opd_library_close(a);
    CHECK(opd_find_quiet("again::card.out") && opd_find_quiet("again::card_"));
    opd_library_close(b);
    CHECK(!opd_find_quiet("again::card.out") && !opd_find_quiet("again::card_") && !opd_find_quiet("again::card"));
}

static char told[4096];
static int told_of;
static void tell_defined(void *user, opd_op *op) {
    CHECK(user == told && opd_op_schema(op) != NULL);
    told_of++;
    if (strncmp(opd_op_name(op), "tell::", 6) != 0) { return; }
    (void)snprintf(told + strlen(told), sizeof told - strlen(told), "+%s ", opd_op_name(op) + 6);
}
static void tell_undefined(void *user, opd_op *op) {
    CHECK(user == told && opd_op_schema(op) != NULL);          /* told before the schema goes */
    if (strncmp(opd_op_name(op), "tell::", 6) != 0) { return; }
    (void)snprintf(told + strlen(told), sizeof told - strlen(told), "-%s ", opd_op_name(op) + 6);
}
TEST(listeners) {
    opd_library *d = lib_new(OPD_DEF, "tell", NULL, "d.c", 1), *i = lib_new(OPD_IMPL, "tell", "CPU", "i.c", 1), *f;
    opd_def_options same;
    opd_listener *l, *m;
    memset(&same, 0, sizeof same);
    same.same_again = 1;
    told[0] = 0;
    told_of = 0;
    CHECK_INT(opd_def(d, "early(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl(i, "dangling", k_first), 0);
    l = opd_listener_add(tell_defined, tell_undefined, told);
    CHECK_STR(told, "+early ");                   /* late: of each that is there, built-in ones too;
        never of a kernel */
    CHECK_INT(told_of, opd_op_list(NULL, NULL, 0));
    CHECK_INT(opd_def(d, "now(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl(i, "now", k_first), 0);
    CHECK_INT(opd_def(d, "now(Tensor x) -> Tensor"), -1);
    opd_error_clear();
    CHECK_STR(told, "+early +now ");
    f = lib_new(OPD_FRAGMENT, "tell", NULL, "f.c", 1);
    CHECK_INT(opd_def_with(f, "now(Tensor x) -> Tensor", &same), 0);
    opd_library_close(f);                         /* one of two definitions */
    CHECK_STR(told, "+early +now ");
    m = opd_listener_add(NULL, tell_undefined, told);
    opd_library_close(i);
    opd_library_close(d);
    CHECK_STR(told, "+early +now -now -now -early -early ");
    opd_listener_remove(l);
    opd_listener_remove(m);
    opd_listener_remove(l);                       /* twice: nothing */
    told[0] = 0;
    d = lib_new(OPD_DEF, "tell", NULL, "d.c", 1);
    CHECK_INT(opd_def(d, "late(Tensor x) -> Tensor"), 0);
    opd_library_close(d);
    CHECK_STR(told, "");
}

//-- C functions -------------------------------------------------------------------------------------------------------

static double f_scaled(double x, int64_t n) { return x * (double)n; }
static void f_nothing(opd_tensor *t) { if (!t) { (void)opd_fail(OPD_ERROR_USER, "none"); } }
static opd_tensor *f_same(opd_tensor *t) { return t; }
static const char *f_text(const char *s, bool up) { return up ? "UP" : s; }
static int64_t f_eight(bool a, const char *b, opd_ints c, opd_doubles d, opd_tensors e, opd_device f, int64_t g,
                       double h) {
    return (a ? 1 : 0) + (int64_t)strlen(b) + c.n + (int64_t)d.data[0] + e.n + (f.type == OPD_META ? 100 : 0) + g +
        (int64_t)h;
}
static opd_tensors f_list(opd_tensors l) { return l; }
static int64_t f_none(void) { return 3; }
static float f_float(double x) { return (float)x; }
static double f_takes_float(double y, float x) { return y + (double)x; }
static double f_takes_int(int x) { return x; }
static double f_takes_long(long long x) { return (double)x; }
static double f_takes_unsigned(unsigned x) { return (double)x; }
OPD_FUNCTION(scaled_op, f_scaled, double, double, int64_t)
OPD_FUNCTION(nothing_op, f_nothing, void, opd_tensor *)
OPD_FUNCTION(same_op, f_same, opd_tensor *, opd_tensor *)
OPD_FUNCTION(text_op, f_text, const char *, const char *, bool)
OPD_FUNCTION(eight_op, f_eight, int64_t, bool, const char *, opd_ints, opd_doubles, opd_tensors, opd_device, int64_t,
             double)
OPD_FUNCTION(list_op, f_list, opd_tensors, opd_tensors)
OPD_FUNCTION(none_op, f_none, int64_t)
OPD_FUNCTION(float_op, f_float, float, double)
OPD_FUNCTION(takes_float_op, f_takes_float, double, double, float)
OPD_FUNCTION(takes_int_op, f_takes_int, double, int)
OPD_FUNCTION(takes_long_op, f_takes_long, double, long long)
OPD_FUNCTION(takes_unsigned_op, f_takes_unsigned, double, unsigned)

static void schema_is(const char *name, const char *want) {
    char text[512];
    (void)opd_schema_print(opd_op_schema(opd_find(name)), text, sizeof text);
    CHECK_STR(text, want);
}
TEST(schemas_of_c_functions) {
    opd_library *d = lib_new(OPD_DEF, "fn", NULL, "d.c", 1);
    static const int64_t sizes[] = {1, 2};
    static const double floats[] = {4};
    const float one = 1;
    opd_tensor *x = opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32);
    opd_value v[8];
    char dump[2048];
    CHECK_INT(opd_def_function(d, "scaled", &scaled_op), 0);
    CHECK_INT(opd_def_function(d, "nothing", &nothing_op), 0);
    CHECK_INT(opd_def_function(d, "same.overload", &same_op), 0);
    CHECK_INT(opd_def_function(d, "text", &text_op), 0);
    CHECK_INT(opd_def_function(d, "eight", &eight_op), 0);
    CHECK_INT(opd_def_function(d, "list", &list_op), 0);
    CHECK_INT(opd_def_function(d, "none", &none_op), 0);
    CHECK_INT(opd_def_function(d, "named(float x, int n=2) -> float", &scaled_op), 0);
    CHECK_OK();
    schema_is("fn::scaled", "fn::scaled(float _0, int _1) -> float _0");
    schema_is("fn::nothing", "fn::nothing(Tensor _0) -> ()");
    schema_is("fn::same.overload", "fn::same.overload(Tensor _0) -> Tensor _0");
    schema_is("fn::text", "fn::text(str _0, bool _1) -> str _0");
    schema_is("fn::eight",
              "fn::eight(bool _0, str _1, int[] _2, float[] _3, Tensor[] _4, Device _5, int _6, float _7) -> int _0");
    schema_is("fn::list", "fn::list(Tensor[] _0) -> Tensor[] _0");
    schema_is("fn::none", "fn::none() -> int _0");
    schema_is("fn::named", "fn::named(float x, int n=2) -> float");
    (void)opd_dump(opd_find("fn::scaled"), dump, sizeof dump);
    CHECK_STR(dump, "name: fn::scaled\nschema: fn::scaled(float _0, int _1) -> float _0\ndebug: registered at d.c:1\n"
              "alias analysis kind: CONSERVATIVE\nCompositeImplicitAutograd[alias]: registered at d.c:1 :: "
              "(float _0, int _1) -> float _0 [ boxed unboxed ]\n");
    v[0] = opd_value_double(2.5);
    v[1] = opd_value_int(4);
    CHECK_NEAR(opd_call_value(opd_find("fn::scaled"), v, 2).u.d, 10, 0);
    CHECK_NEAR(opd_call_value(opd_find("fn::named"), v, 1).u.d, 5, 0);
    v[0] = opd_value_tensor(x);
    CHECK(opd_call_op(opd_find("fn::same.overload"), v, 1) == x);
    CHECK_INT(opd_call_all(opd_find("fn::nothing"), NULL, v, 1), 0);
    CHECK_INT(opd_call_value(opd_find("fn::none"), v, 0).u.i, 3);
    v[0] = opd_value_str("low");
    v[1] = opd_value_bool(false);
    CHECK_STR(opd_call_value(opd_find("fn::text"), v, 2).u.s, "low");
    v[0] = opd_value_tensors(&x, 1);
    CHECK(opd_call_list(opd_find("fn::list"), v, 1).n == 1);
    v[0] = opd_value_bool(true);
    v[1] = opd_value_str("four");
    v[2] = opd_value_ints(sizes, 2);
    v[3] = opd_value_doubles(floats, 1);
    v[4] = opd_value_tensors(&x, 1);
    v[5] = opd_value_device(opd_device_make(OPD_META, -1));
    v[6] = opd_value_int(1000);
    v[7] = opd_value_double(20000);
    CHECK_INT(opd_call_value(opd_find("fn::eight"), v, 8).u.i, 1 + 4 + 2 + 4 + 1 + 100 + 1000 + 20000);
    CHECK_OK();
    opd_library_close(d);
}
#ifdef __cplusplus
#include <stdexcept>
static int throws(opd_call *call) {
    switch (opd_arg_int(call, 0)) {
    case 0: return opd_return_int(call, 7);
    case 1: throw std::runtime_error("thrown by the kernel");
    case 2: throw std::bad_alloc();
    default: throw 5;
    }
}
static int64_t f_throws(int64_t x) { return x ? throw std::runtime_error("thrown by the function") : 8; }
static int formula_throws(opd_backward_call *) { throw std::runtime_error("thrown by the formula"); }
static int gives_itself(opd_call *call) { return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0))); }
OPD_FUNCTION(throws_op, f_throws, int64_t, int64_t)
TEST(exceptions_become_errors) {
    opd_library *d = lib_new(OPD_DEF, "fn", NULL, "d.c", 1);
    opd_op_desc desc = opd_op_desc();
    const float one = 1;
    opd_tensor *x = opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32);
    desc.schema = "throws(int x) -> int";
    desc.any = OPD_CATCH(throws);
    CHECK_INT(opd_define(d, &desc), 0);
    desc = opd_op_desc();
    desc.schema = "itself(Tensor x) -> Tensor";
    desc.any = gives_itself;
    desc.backward = OPD_CATCH(formula_throws);
    CHECK_INT(opd_define(d, &desc), 0);
    CHECK_INT(opd_def_function(d, "function", &throws_op), 0);
    for (int again = 0; again < 3; again++) {
        opd_value v[] = {opd_value_int(0)};
        CHECK_INT(opd_call_value(opd_find("fn::throws"), v, 1).u.i, 7);
        CHECK_INT(opd_call_value(opd_find("fn::function"), v, 1).u.i, 8);
        CHECK_OK();
        v[0] = opd_value_int(1);
        (void)opd_call_value(opd_find("fn::throws"), v, 1);
        CHECK_ERROR(OPD_ERROR_USER, "fn::throws: thrown by the kernel");
        (void)opd_call_value(opd_find("fn::function"), v, 1);
        CHECK_ERROR(OPD_ERROR_USER, "fn::function: thrown by the function");
        v[0] = opd_value_int(2);
        (void)opd_call_value(opd_find("fn::throws"), v, 1);
        CHECK_ERROR(OPD_ERROR_MEMORY, "fn::throws: ");
        v[0] = opd_value_int(3);
        (void)opd_call_value(opd_find("fn::throws"), v, 1);
        CHECK_ERROR(OPD_ERROR_USER, "fn::throws: a kernel threw an exception that is not a std::exception");
    }
    opd_tensor_set_requires_grad(x, true);
    CHECK_INT(opd_backward(OPD_CALL(opd_find("fn::itself"), x)), -1);
    CHECK_ERROR(OPD_ERROR_USER, "thrown by the formula");
    opd_library_close(d);
}
#endif
TEST(types_of_c_that_are_refused) {
    opd_library *d = lib_new(OPD_DEF, "fn", NULL, "d.c", 1);
    CHECK_INT(opd_def_function(d, "a", &float_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER,
                "a: INVALID TYPE in return 1: float is not supported as an argument type, use double instead");
    CHECK_INT(opd_def_function(d, "a", &takes_float_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER,
                "INVALID TYPE in argument 2: float is not supported as an argument type, use double instead");
    CHECK_INT(opd_def_function(d, "a", &takes_int_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER,
                "INVALID TYPE in argument 1: Only int64_t and bool are supported as an integral argument type");
    CHECK_INT(opd_def_function(d, "a", &takes_unsigned_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Only int64_t and bool are supported");
    if (takes_long_op.signature[1] != 'i') {      /* where int64_t is long, long long is another type */
        CHECK_INT(opd_def_function(d, "a", &takes_long_op), -1);
        CHECK_ERROR(OPD_ERROR_REGISTER, "use int64_t instead");
    }
    CHECK_INT(opd_def_function(d, NULL, &none_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "NULL");
    CHECK_INT(opd_def_function(d, "a", NULL), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "NULL");
    CHECK(opd_find_quiet("fn::a") == NULL);
    opd_library_close(d);
}
TEST(c_functions_against_schemas) {
    opd_library *d = lib_new(OPD_DEF, "fn", NULL, "d.c", 1), *i = lib_new(OPD_IMPL, "fn", NULL, "i.c", 2), *j, *k;
    opd_op *op;
    CHECK_INT(opd_def_function(d, "op(float x) -> float", &scaled_op), -1);
    CHECK(strstr(opd_error_message(), "expected schema: fn::op(float x) -> float\n    registered at d.c:1\n") != NULL);
    CHECK(strstr(opd_error_message(),
          "inferred schema: (float _0, int _1) -> float _0\n    registered at d.c:1\n") != NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "The number of arguments is different. 1 vs 2.");
    CHECK(opd_find_quiet("fn::op") == NULL);
    CHECK_INT(opd_def_function(d, "op(float x, int n) -> ()", &scaled_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "The number of returns is different. 0 vs 1.");
    CHECK_INT(opd_def_function(d, "op(float x, float n) -> float", &scaled_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Type mismatch in argument 2: float vs int.");
    CHECK_INT(opd_def_function(d, "op(float x, int n) -> int", &scaled_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Type mismatch in return 1: int vs float.");
    /* a kernel of another type than the first; boxed ones mix with anything */
    CHECK_INT(opd_impl_function(i, "op", "CPU", &scaled_op), 0);
    CHECK_INT(opd_impl_key(i, "op", "Meta", k_first, NULL, NULL), 0);
    CHECK_INT(opd_impl_function(i, "op", "CUDA", &none_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER,
                "Mismatch in kernel C signatures\n  operator: fn::op\n  kernel 1: (float _0, int _1) -> float _0");
    /* the definition comes later and does not fit: the kernels stay, nothing is defined */
    CHECK_INT(opd_def(d, "op(float x) -> float"), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "The number of arguments is different");
    op = opd_find_quiet("fn::op");
    CHECK(op != NULL && opd_op_schema(op) == NULL);
    CHECK_INT(opd_def(d, "op(float x, int n) -> float"), 0);
    j = lib_new(OPD_IMPL, "fn", NULL, "j.c", 3);
    CHECK_INT(opd_impl_function(j, "op", NULL, &none_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Mismatch in kernel C signatures");
    opd_library_close(i);                         /* the type stays known while the operator lives */
    opd_library_close(d);
    d = lib_new(OPD_DEF, "fn", NULL, "d.c", 1);
    i = lib_new(OPD_IMPL, "fn", "CPU", "i.c", 2);
    k = lib_new(OPD_IMPL, "fn", "Meta", "k.c", 3);
    CHECK_INT(opd_impl_key(k, "op", "Meta", k_first, NULL, NULL), 0);
    CHECK_INT(opd_impl_function(i, "op", "CPU", &scaled_op), 0);
    opd_library_close(i);                         /* but a schema fits kernels that are there, not those that were */
    CHECK_INT(opd_def(d, "op(float x, str n) -> float"), 0);
    opd_library_close(k);
    opd_library_close(d);
    d = lib_new(OPD_DEF, "fn", NULL, "d.c", 1);
    i = lib_new(OPD_IMPL, "fn", "CPU", "i.c", 2);
    CHECK_INT(opd_def(d, "op(float x, int n) -> float"), 0);
    CHECK_INT(opd_impl_function(i, "op", "CPU", &scaled_op), 0);
    opd_library_close(i);
    CHECK_INT(opd_impl_function(j, "op", NULL, &none_op), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Mismatch in kernel C signatures");
    opd_library_close(d);
    CHECK_INT(opd_impl_function(j, "op", NULL, &none_op), 0);
    opd_library_close(j);
    CHECK_INT(opd_check_invariants(), 0);
}

//-- keys that are none, and fallbacks of backends ----------------------------------------------------------------------

TEST(undefined_is_the_catch_all) {
    static const char *const names[] = {"Undefined", "CatchAll"};
    opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    int i;
    for (i = 0; i < 2; i++) {
        opd_library *d = lib_new(OPD_DEF, "all", names[i], "d.c", 1), *b = lib_new(OPD_IMPL, "all", names[i], "b.c", 2);
        char text[4000];
        CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
        CHECK_INT(opd_impl(b, "op", k_first), 0);
        CHECK_INT(opd_impl_key(b, "op", "Meta", k_second, NULL, NULL), 0);       /* nothing to be inconsistent with */
        CHECK(opd_dump(opd_find("all::op"), text, sizeof text) > 0);
        CHECK(strstr(text, "CompositeImplicitAutograd[alias]: registered at b.c:2") && !strstr(text, "Undefined"));
        CHECK(OPD_CALL(opd_find("all::op"), x) == x);
        CHECK_INT(opd_impl_key(d, "op", names[i], k_second, NULL, NULL), 0);
        opd_library_close(b);
        CHECK(OPD_CALL(opd_find("all::op"), x) == x);
        opd_library_close(d);
    }
}

TEST(fallbacks_of_backends_that_have_none_in_pytorch) {
    static const char *const keys[] = {"AutogradPrivateUse1", "AutogradPrivateUse2", "AutogradPrivateUse3",
                                       "AutogradNestedTensor", "AutocastPrivateUse1", "AutogradIPU"};
    size_t i;
    for (i = 0; i < sizeof keys / sizeof *keys; i++) {
        opd_library *d = lib_new(OPD_DEF, "all", NULL, "d.c", 1), *b, *c;
        char text[20000], line[100];
        CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
        b = lib_new(OPD_IMPL, "_", keys[i], "b.c", 2);
        c = lib_new(OPD_IMPL, "_", keys[i], "c.c", 3);
        CHECK_INT(opd_fallback(b, OPD_FALLTHROUGH), 0);
        CHECK_INT(opd_fallback(c, OPD_FALLTHROUGH), -1);
        CHECK_ERROR(OPD_ERROR_REGISTER, "previous registration registered at b.c:2");
        (void)snprintf(line, sizeof line, "\n%s: fallthrough registered at b.c:2 [backend fallback]", keys[i]);
        CHECK(opd_dump_table(opd_find("all::op"), text, sizeof text) > 0 && strstr(text, line));
        opd_library_close(b);
        (void)snprintf(line, sizeof line, "registered at opdispatch.h");
        CHECK(opd_dump_table(opd_find("all::op"), text, sizeof text) > 0 && strstr(strstr(text, keys[i]), line));
        CHECK_INT(opd_fallback(c, k_first), 0);
        opd_library_close(c);
        opd_library_close(d);
    }
    {
        opd_library *b = lib_new(OPD_IMPL, "_", "AutogradCPU", "b.c", 2);
        CHECK_INT(opd_fallback(b, OPD_FALLTHROUGH), -1);
        CHECK_ERROR(OPD_ERROR_REGISTER, "multiple backend fallbacks for the same dispatch key AutogradCPU");
        opd_library_close(b);
    }
}

//-- invalid descriptors -------------------------------------------------------------------------------------------------

static int b_none(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_tensor(bw, 0)); }
static int define_with(opd_library *lib, void (*fill)(opd_op_desc *d)) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "op(Tensor x, Tensor y) -> Tensor";
    fill(&d);
    return opd_define(lib, &d);
}
static void fill_composite_formula(opd_op_desc *d) { d->composite = k_first; d->backward = b_none; }
static void fill_composite_any(opd_op_desc *d) { d->composite = d->any = k_first; }
static void fill_two_formulas(opd_op_desc *d) { d->cpu = d->autograd = k_first; d->backward = b_none; }
static void fill_no_comma(opd_op_desc *d) { d->cpu = k_first; d->backward = b_none; d->save = "x result"; }
static void fill_no_comma_constant(opd_op_desc *d) { d->cpu = k_first; d->backward = b_none; d->constant = "x  y"; }
static void fill_unsaved(opd_op_desc *d) { d->cpu = k_twice; d->backward = b_none; d->save = "y , result(x)"; }
static void fill_said(opd_op_desc *d) { d->composite = k_first; d->backward = OPD_NOT_DIFFERENTIABLE; }
static void fill_both(opd_op_desc *d) { d->composite = k_first; d->cpu = k_twice; d->backward = b_none; d->save = "x"; }

TEST(cards_that_contradict_themselves) {
    opd_library *lib = lib_new(OPD_FRAGMENT, "card", NULL, "t", 1);
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true), *y;
    CHECK_INT(define_with(lib, fill_composite_formula), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "so `backward` would never be called. Set `any` instead of `composite`");
    CHECK_INT(define_with(lib, fill_composite_any), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "so `composite` would never be called");
    CHECK_INT(define_with(lib, fill_two_formulas), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "`autograd` and `backward` are both set");
    CHECK_INT(define_with(lib, fill_no_comma), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "op: save: a comma is missing before 'result'");
    CHECK_INT(define_with(lib, fill_no_comma_constant), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "op: constant: a comma is missing before 'y'");
    CHECK(opd_find_quiet("card::op") == NULL);
    CHECK_INT(define_with(lib, fill_said), 0);
    opd_library_close(lib);
    lib = lib_new(OPD_FRAGMENT, "card", NULL, "t", 1);
    CHECK_INT(define_with(lib, fill_both), 0);    /* the formula belongs to the CPU's kernel */
    y = OPD_CALL(opd_find("card::op"), x, x);
    CHECK_STR(opd_tensor_grad_fn(y), "OpBackward0");
    opd_library_close(lib);
    lib = lib_new(OPD_FRAGMENT, "card", NULL, "t", 1);
    CHECK_INT(define_with(lib, fill_unsaved), 0);
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(opd_find("card::op"), x, x))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "the backward function reads tensor argument 0 of card::op, which is not named in `save`");
    opd_library_close(lib);
}

TEST(what_has_no_kernel_says_so) {
    opd_library *lib = lib_new(OPD_FRAGMENT, "card", NULL, "t", 1);
    opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    opd_overloads *set;
    opd_value v = opd_value_tensor(x);
    CHECK_INT(opd_def(lib, "bare(Tensor x) -> Tensor"), 0);
    CHECK(OPD_CALL(opd_find("card::bare"), x) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "'card::bare' is defined, but has no kernel");
    CHECK((set = opd_overloads_find("card::bare")) != NULL);
    opd_library_close(lib);
    CHECK_INT(opd_overloads_call(set, NULL, &v, 1, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "card::bare() has no overload left: the libraries of all its overloads have been closed or unloaded");
    CHECK_INT(opd_key_parse("Batched"), OPD_KEY_INVALID);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "could not parse dispatch key: Batched; batching rules are registered at FuncTorchBatched");
    CHECK_INT(opd_key_parse("Math"), OPD_KEY_INVALID);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "it is CompositeImplicitAutograd");
}

//-- many operators ------------------------------------------------------------------------------------------------------

#define MANY 5000
static opd_op *many_ops[MANY];
TEST(many_operators) {
    static const char *const names[] = {"many::op%d", "many::lonely%d.x", "many::sets.o%d"};
    const int64_t before = opd_memory_stats().live;
    char name[80];
    int round, i;
    for (round = 0; round < 2; round++) {
        opd_library *lib = lib_new(OPD_FRAGMENT, "many", NULL, "t", 1);
        opd_overloads *set;
        for (i = 0; i < MANY; i++) {
            int n = snprintf(name, sizeof name, names[i % 3], i);
            (void)snprintf(name + n, sizeof name - (size_t)n, "(Tensor x) -> Tensor");
            CHECK_INT(opd_def(lib, name), 0);
        }
        for (i = 0; i < MANY; i++) {
            opd_op *op;
            (void)snprintf(name, sizeof name, names[i % 3], i);
            op = opd_find(name);
            CHECK(op && strcmp(opd_op_name(op), name) == 0 && opd_op_schema(op) != NULL);
            if (round) { CHECK(op == many_ops[i]); }          /* handles of a name stay */
            many_ops[i] = op;
        }
        CHECK(opd_find_quiet("many::op1") == NULL && opd_find_quiet("many::sets") == NULL);
        CHECK((set = opd_overloads_find("many::sets")) != NULL);
        for (i = 2; i < MANY; i += 3) { CHECK(opd_overloads_at(set, i / 3) == many_ops[i]); }
        CHECK(opd_overloads_at(set, MANY / 3) == NULL);
        CHECK(opd_overloads_at(opd_overloads_find("many::lonely4"), 0) == many_ops[4]);
        CHECK_INT(opd_check_invariants(), 0);
        opd_library_close(lib);
        for (i = 0; i < MANY; i++) { CHECK(opd_op_schema(many_ops[i]) == NULL); }
        CHECK(opd_overloads_at(set, 0) == NULL);
        CHECK(OPD_CALL(many_ops[0], 1) == NULL);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the operator many::op0 is not defined any more: its library was closed (opd_library_close)");
        CHECK(opd_memory_stats().live - before < (int64_t)MANY * 450);           /* what handles need, of 1,700 */
    }
}

/* A name may belong to an operator, to overloads, or to both, in any order of registering and removing them. */
TEST(names_of_operators_and_of_overloads) {
    opd_library *lib = lib_new(OPD_FRAGMENT, "both", NULL, "t", 1), *more;
    opd_op *bare, *over;
    opd_overloads *set;
    CHECK_INT(opd_def(lib, "name.over(Tensor x) -> Tensor"), 0);
    over = opd_find("both::name.over");
    CHECK(over && opd_find_quiet("both::name") == NULL && opd_find_quiet("both::name.") == NULL);
    set = opd_overloads_find("both::name");
    CHECK(set && opd_overloads_at(set, 0) == over && opd_overloads_at(set, 1) == NULL);
    CHECK(opd_overloads_find("both::name.over") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no operator named 'both::name.over'");
    more = lib_new(OPD_FRAGMENT, "both", NULL, "t", 1);
    CHECK_INT(opd_impl_key(more, "name", "CPU", opd_fallthrough, NULL, NULL), 0);
    CHECK(opd_find("both::name") == NULL);        /* a kernel, no definition */
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "Could not find schema for both::name, but we found an implementation");
    CHECK_INT(opd_def(more, "name(Tensor x, int n=1) -> Tensor"), 0);
    bare = opd_find("both::name");
    CHECK(bare && bare != over && opd_overloads_at(set, 0) == over && opd_overloads_at(set, 1) == bare);
    opd_library_close(lib);
    CHECK(opd_find_quiet("both::name.over") == NULL && opd_find_quiet("both::name") == bare);
    CHECK(opd_overloads_at(set, 0) == bare && opd_overloads_at(set, 1) == NULL);
    lib = lib_new(OPD_FRAGMENT, "both", NULL, "t", 1);
    CHECK_INT(opd_def(lib, "name.over(Tensor x) -> Tensor"), 0);
    CHECK(opd_find("both::name.over") == over && opd_overloads_at(set, 0) == bare && opd_overloads_at(set, 1) == over);
    opd_library_close(more);
    opd_library_close(lib);
    CHECK(opd_find_quiet("both::name") == NULL && opd_find_quiet("both::name.over") == NULL);
    CHECK(opd_overloads_at(set, 0) == NULL);
    CHECK(strcmp(opd_op_name(bare), "both::name") == 0 && strcmp(opd_op_name(over), "both::name.over") == 0);
    CHECK_INT(opd_check_invariants(), 0);
}

/* Registering and removing operators with other names does not change the lists of a name. */
TEST(many_names_near_a_set) {
    opd_library *lib = lib_new(OPD_FRAGMENT, "many", NULL, "t", 1), *other = lib_new(OPD_FRAGMENT, "other", NULL, "t", 1);
    opd_overloads *set;
    char name[80];
    int i;
    CHECK_INT(opd_def(lib, "near.b(Tensor x) -> Tensor"), 0);
    set = opd_overloads_find("many::near");
    for (i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof name, "near.o%d(Tensor x) -> Tensor", i);
        CHECK_INT(opd_def(other, name), 0);
        (void)snprintf(name, sizeof name, "nears.o%d(Tensor x) -> Tensor", i);
        CHECK_INT(opd_def(lib, name), 0);
        CHECK(opd_overloads_at(set, 0) == opd_find("many::near.b") && opd_overloads_at(set, 1) == NULL);
    }
    CHECK(opd_find("many::nera.b") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no operator named 'many::nera.b'; did you mean many::near.b");
    CHECK(opd_find("MANY::nearr") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "did you mean many::near.b");
    CHECK(opd_find("many::near") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "did you mean many::near.b");
    CHECK(opd_find("near") == NULL);              /* without its namespace */
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "did you mean many::near.b");
    CHECK(opd_find("matmul") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "did you mean aten::matmul");
    CHECK(opd_find("not_linked::near") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "nothing is registered in 'not_linked': is the file with its OPD_LIBRARY linked");
    opd_library_close(other);
    opd_library_close(lib);
}

//-- lists and counts --------------------------------------------------------------------------------------------------

TEST(lists_with_filters) {
    const opd_registry_info before = opd_registry_stats();
    opd_library *d = lib_new(OPD_DEF, "list", NULL, "d.c", 1), *i = lib_new(OPD_IMPL, "list", "XLA", "i.c", 2);
    opd_op_filter filter;
    opd_def_options options;
    opd_op *ops[4];
    memset(&filter, 0, sizeof filter);
    memset(&options, 0, sizeof options);
    options.tags = OPD_OPTAG_POINTWISE | OPD_OPTAG_USER;
    CHECK_INT(opd_def_with(d, "tagged(Tensor x) -> Tensor", &options), 0);
    CHECK_INT(opd_def(d, "plain(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_def(d, "plain.other(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl(i, "plain", k_first), 0);
    CHECK_INT(opd_impl(i, "nowhere", k_first), 0);
    filter.ns = "list";
    CHECK_INT(opd_op_list(&filter, ops, 4), 3);
    CHECK_STR(opd_op_name(ops[0]), "list::tagged");
    CHECK_STR(opd_op_name(ops[2]), "list::plain.other");
    CHECK_INT(opd_op_list(&filter, ops, 1), 3);   /* cut */
    filter.part = "plain";
    CHECK_INT(opd_op_list(&filter, ops, 4), 2);
    filter.key = "XLA";
    CHECK_INT(opd_op_list(&filter, ops, 4), 1);
    CHECK_STR(opd_op_name(ops[0]), "list::plain");
    filter.key = "NoKey";
    CHECK_INT(opd_op_list(&filter, ops, 4), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "could not parse dispatch key: NoKey");
    filter.key = filter.part = NULL;
    filter.tags = OPD_OPTAG_USER;
    CHECK_INT(opd_op_list(&filter, ops, 4), 1);
    CHECK_STR(opd_op_name(ops[0]), "list::tagged");
    filter.tags = 0;
    filter.dangling = true;
    CHECK_INT(opd_op_list(&filter, ops, 4), 1);
    CHECK_STR(opd_op_name(ops[0]), "list::nowhere");
    filter.dangling = false;
    filter.ns = "aten";
    filter.part = "exp";
    CHECK(opd_op_list(&filter, ops, 4) > 3);
    CHECK_INT(opd_registry_stats().dangling, before.dangling + 1);
    CHECK_INT(opd_registry_stats().libraries, before.libraries + 2);
    opd_library_close(i);
    opd_library_close(d);
    CHECK_INT(opd_registry_stats().libraries, before.libraries);
    CHECK_INT(opd_registry_stats().dangling, before.dangling);
}

/* Built-in operators that a program may define itself are registered when their namespace is used first.  The program's
   definitions remain.  When the program's library is closed, the built-in operator takes their place. */
TEST(lists_of_what_waits) {
    static const char *const spaces[] = {"torchvision", "c10d", "_c10d_functional", "_c10d_functional_autograd"};
    static const char *const names[] = {"nms", "allreduce_", "all_reduce", "all_to_all_single"};
    static bool there;                            /* the built-in ones are, from the first time on */
    opd_library *libs[4];
    opd_op_filter filter;
    char text[100], schema[1000];
    size_t i;
    memset(&filter, 0, sizeof filter);
    for (i = 0; i < 4; i++) {
        libs[i] = opd_library_open(OPD_FRAGMENT, spaces[i], NULL, __FILE__, __LINE__);
        snprintf(text, sizeof text, "%s(int mine) -> int", names[i]);
        if (!there) { CHECK_INT(opd_def(libs[i], text), 0); }
    }
    for (i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "%s::%s", spaces[i], names[i]);
        filter.ns = spaces[i];
        const int count = opd_op_list(&filter, NULL, 0);
        CHECK(count >= 3);
        CHECK(opd_schema_print(opd_op_schema(opd_find(text)), schema, sizeof schema) > 0);
        CHECK((strstr(schema, "int mine") == NULL) == there);
        CHECK_OK();
        opd_library_close(libs[i]);
        CHECK_INT(opd_op_list(&filter, NULL, 0), count);
        CHECK(opd_schema_print(opd_op_schema(opd_find(text)), schema, sizeof schema) > 0);
        CHECK(strstr(schema, "int mine") == NULL);
        snprintf(text, sizeof text, "%s::no_such", spaces[i]);
        CHECK(opd_find_quiet(text) == NULL);
    }
    there = true;
    filter.ns = "torchvisio";
    CHECK_INT(opd_op_list(&filter, NULL, 0), 0);
    CHECK(opd_find_quiet("torchvision") == NULL);
    CHECK_OK();
}

/* The built-in operators whose tags differ from PyTorch's. */
static const struct { const char *row, *why; } other_tags[] = {
    {"equal\tpointwise", "it returns one truth value for all elements"},
    {"_ctc_loss\tdynamic_output_shape", "the sizes of its results follow from the lengths, which are numbers"},
    {"_ctc_loss.Tensor\tdynamic_output_shape", "it calls _ctc_loss, and reading the lengths is refused by itself"},
    {"narrow_copy.out\tview_copy", "as the other out= forms of copies of views have it"},
    {"split_copy.Tensor_out\tview_copy", "as the other out= forms of copies of views have it"},
    {"split_with_sizes_copy.out\tview_copy", "as the other out= forms of copies of views have it"},
    {"unbind_copy.int_out\tview_copy", "as the other out= forms of copies of views have it"},
    {"_scaled_dot_product_attention\tnondeterministic_seeded", "PyTorch 2.15 lacks it; it may drop weights"},
    {"_scaled_dot_product_attention_forward\tnondeterministic_seeded", "PyTorch 2.15 lacks it; it may drop weights"},
};
/* Every built-in operator has the tags of PyTorch 2.15, except those above.  More operators are pointwise here: all that
   compute each element of the result from the elements at its place. */
TEST(tags_of_built_in_operators) {
    static const struct { const char *name; uint32_t tag; } tags[] = {
        {"core", OPD_OPTAG_CORE}, {"pointwise", OPD_OPTAG_POINTWISE}, {"inplace_view", OPD_OPTAG_INPLACE_VIEW},
        {"view_copy", OPD_OPTAG_VIEW_COPY}, {"data_dependent_output", OPD_OPTAG_DATA_DEPENDENT_OUTPUT},
        {"dynamic_output_shape", OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE},
        {"nondeterministic_seeded", OPD_OPTAG_NONDETERMINISTIC_SEEDED},
        {"nondeterministic_bitwise", OPD_OPTAG_NONDETERMINISTIC_BITWISE},
        {"needs_exact_strides", OPD_OPTAG_NEEDS_EXACT_STRIDES},
        {"needs_fixed_stride_order", OPD_OPTAG_NEEDS_FIXED_STRIDE_ORDER},
        {"flexible_layout", OPD_OPTAG_FLEXIBLE_LAYOUT},
        {"maybe_aliasing_or_mutating", OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING}};
    static char text[1 << 16];
    static opd_op *ops[4000];
    FILE *f = check_golden("tags.txt");
    opd_op_filter filter;
    size_t n, k, other;
    int count, at, differ = 0;
    CHECK_OR_RETURN(f != NULL);
    text[0] = '\n';
    n = fread(text + 1, 1, sizeof text - 2, f);
    CHECK(n < sizeof text - 2);
    text[1 + n] = 0;
    (void)fclose(f);
    memset(&filter, 0, sizeof filter);
    filter.ns = "aten";
    count = opd_op_list(&filter, ops, 4000);
    CHECK(count > 1000 && count <= 4000);
    for (at = 0; at < count && at < 4000; at++) {
        char row[300];
        for (k = 0; k < sizeof tags / sizeof *tags; k++) {
            const bool has = (opd_op_tags(ops[at]) & tags[k].tag) != 0;
            (void)snprintf(row, sizeof row, "\n%s\t%s\n", opd_op_name(ops[at]) + 6, tags[k].name);
            const bool wanted = strstr(text, row) != NULL;
            if (has == wanted || (has && tags[k].tag == OPD_OPTAG_POINTWISE)) { continue; }
            for (other = 0; other < sizeof other_tags / sizeof *other_tags; other++) {
                const size_t length = strlen(other_tags[other].row);
                if (strncmp(row + 1, other_tags[other].row, length) == 0 && row[1 + length] == '\n') { break; }
            }
            differ++;
            if (other == sizeof other_tags / sizeof *other_tags) { printf("%s", row); CHECK(!"tag"); }
        }
        CHECK(opd_op_tags(ops[at]) & OPD_OPTAG_PT2_COMPLIANT);
    }
    CHECK_INT(differ, sizeof other_tags / sizeof *other_tags);
    filter.tags = OPD_OPTAG_CORE;
    CHECK(opd_op_list(&filter, NULL, 0) > 150);
    CHECK(opd_op_tags(opd_find("aten::add.out")) & OPD_OPTAG_POINTWISE);
}

TEST(what_draws_random_numbers) {
    const opd_schema *dropout = opd_op_schema(opd_find("aten::dropout"));
    opd_schema *other = opd_schema_parse("aten::dropout.not_there(Tensor input, float p, bool train) -> Tensor");
    opd_value values[3];
    values[0] = values[1] = values[2] = OPD_DEFAULT;
    CHECK(opd_schema_is_nondeterministic(dropout, NULL) && opd_schema_is_nondeterministic(dropout, values));
    values[2] = opd_value_bool(true);
    CHECK(opd_schema_is_nondeterministic(dropout, values));
    values[2] = opd_value_bool(false);
    CHECK(!opd_schema_is_nondeterministic(dropout, values));
    CHECK(opd_schema_is_nondeterministic(opd_op_schema(opd_find("aten::randn")), NULL));
    CHECK(!opd_schema_is_nondeterministic(opd_op_schema(opd_find("aten::relu")), NULL));
    CHECK(!opd_schema_is_nondeterministic(other, NULL) && !opd_schema_is_nondeterministic(NULL, NULL));
    opd_schema_free(other);
    CHECK_OK();
}

//-- explaining, calling at a key, errors ------------------------------------------------------------------------------

TEST(calls_are_explained) {
    opd_library *d = lib_new(OPD_DEF, "why", NULL, "why.c", 1), *c = lib_new(OPD_IMPL, "why", "CPU", "cpu.c", 2);
    opd_library *t = lib_new(OPD_IMPL, "why", "Tracer", "tracer.c", 3), *m = lib_new(OPD_IMPL, "why", "Meta",
                             "meta.c", 4);
    const float one = 1;
    opd_tensor *x = opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32);
    opd_tensor *y = opd_tensor_new_on(opd_ints_of(NULL, 0), OPD_FLOAT32, opd_device_make(OPD_META, -1));
    opd_key_guard in, ex;
    opd_value v[2];
    char text[4096];
    size_t n;
    opd_op *op;
    CHECK_INT(opd_def(d, "op(Tensor self, Tensor[] more) -> Tensor"), 0);
    CHECK_INT(opd_impl(c, "op", k_first), 0);
    CHECK_INT(opd_impl(t, "op", k_first), 0);
    CHECK_INT(opd_impl(m, "op", k_first), 0);
    op = opd_find("why::op");
    v[0] = opd_value_tensor(x);
    v[1] = opd_value_tensors(&y, 1);
    n = opd_explain(op, v, 2, text, sizeof text);
    CHECK_INT(n, strlen(text));
    CHECK(strstr(text, "why::op(Tensor self, Tensor[] more) -> Tensor\nregistered at why.c:1\nbackend CPU") == text);
    CHECK(strstr(text, "backend CPU: argument 'self'\nbackend Meta, the highest: argument 'more'[0]\n") != NULL);
#define BOTH "from argument 'self', argument 'more'[0]"
    CHECK(strstr(text, "  => Meta: " BOTH "; kernel, registered at meta.c:4\n") != NULL);
    CHECK(strstr(text, "     AutocastMeta: " BOTH "; excluded on this thread, by default; ") != NULL);
    CHECK(strstr(text, "     BackendSelect: from this thread's included keys (by default); falls through; backend "
                 "fallback, ") != NULL);
    CHECK(strstr(text, "     AutogradMeta: " BOTH "; left out: no argument requires grad") != NULL);
    CHECK(strstr(text, "-> Undefined: when no other key is left; an error: no kernel\n") != NULL);
    CHECK(strstr(text, "Tracer") == NULL);
    v[1] = opd_value_tensors(&x, 1);
    (void)opd_tensor_set_requires_grad(x, true);
    in = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_TRACER));
    (void)opd_explain(op, v, 2, text, sizeof text);
    CHECK(strstr(text, "  => Tracer: from this thread's included keys; kernel, registered at tracer.c:3\n") != NULL);
    CHECK(strstr(text, "  -> AutogradCPU: from argument 'self', argument 'more'[0]; backend fallback, ") != NULL);
    CHECK(strstr(text, "  -> CPU: from argument 'self', argument 'more'[0]; kernel, registered at cpu.c:2\n") != NULL);
    CHECK(strstr(text, "backend ") == NULL || strstr(text, "backend CPU") == NULL);
    ex = opd_keys_exclude(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_TRACER));
    (void)opd_explain(op, v, 2, text, sizeof text);
    CHECK(strstr(text, "     Tracer: from this thread's included keys; excluded on this thread; kernel, ") != NULL);
    CHECK(strstr(text, "  => AutogradCPU: ") != NULL);
    opd_keys_restore(ex);
    opd_keys_restore(in);
    CHECK_INT(opd_explain(op, v, 2, text, 16), opd_explain(op, v, 2, NULL, 0));
    CHECK_INT(strlen(text), 15);
    CHECK_OK();
    CHECK_INT(opd_explain(op, v, 1, text, sizeof text), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "is missing value for argument 'more'");
    CHECK_INT(opd_explain(NULL, v, 1, text, sizeof text), 0);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "NULL");
    opd_library_close(m);
    opd_library_close(t);
    opd_library_close(c);
    opd_library_close(d);
}

/* What opd_explain says against what runs, as opd_dispatch_trace_set shows it: random kernels, each of which goes on
   below its key, random fallbacks and fallthroughs, thread states, arguments. */
static int k_below(opd_call *call) {
    const opd_keyset keys = opd_call_keys(call);
    int f = OPD_F_COUNT - 1;
    while (f > 0 && !(keys.functionality & OPD_BIT_OF(f))) { f--; }
    return f == 0 ? opd_return_int(call, 7) : opd_redispatch(call, opd_keyset_and(keys, opd_keyset_below(f)));
}
static char hops[4096];
static void note_hop(void *user, int is_error, const char *text) {
    const char *key = strstr(text, "key=[");
    const size_t n = strlen(hops);
    (void)user;
    if (is_error == -1 && key && strstr(text, "op=[told::op]")) {
        (void)snprintf(hops + n, sizeof hops - n, "%.*s ", (int)strcspn(key + 5, "]"), key + 5);
    }
}
/* Writes the keys with an arrow in the explanation, up to the first error. */
static void explained_hops(const char *text, char *out, size_t cap) {
    const char *end, *error;
    size_t n = 0;
    out[0] = 0;
    for (; (text = strchr(text, '\n')) != NULL; ) {
        text++;
        if (strncmp(text, "  => ", 5) != 0 && strncmp(text, "  -> ", 5) != 0) { continue; }
        n += (size_t)snprintf(out + n, cap - n, "%.*s ", (int)strcspn(text + 5, ":"), text + 5);
        end = text + strcspn(text, "\n");
        error = strstr(text, "; an error: ");
        if (error && error < end) { break; }
    }
}
TEST(explained_calls_are_what_runs) {
    static const char *const keys[] = {"CPU", "Meta", "AutogradCPU", "Autograd", "CompositeExplicitAutograd",
        "CompositeImplicitAutograd", "ZeroTensor", "Conjugate", "Functionalize", "ADInplaceOrView", "BackendSelect",
        "AutocastCPU", "Undefined", "Negative", "FuncTorchGradWrapper", "SparseCPU", "QuantizedMeta"};
    static const char *const fallbacks[] = {"Functionalize", "ZeroTensor", "FuncTorchGradWrapper"};
    static const int bits[] = {OPD_F_ZERO_TENSOR, OPD_F_CONJUGATE, OPD_F_FUNCTIONALIZE, OPD_F_NEGATIVE, OPD_F_GRAD_WRAPPER,
        OPD_F_AD_INPLACE_OR_VIEW, OPD_F_AUTOGRAD, OPD_F_AUTOCAST, OPD_F_DENSE, OPD_F_SPARSE, OPD_F_QUANTIZED,
        OPD_F_BACKEND_SELECT};
    enum { KEYS = sizeof keys / sizeof *keys, FALLBACKS = sizeof fallbacks / sizeof *fallbacks,
           BITS = sizeof bits / sizeof *bits };
    static const opd_backend places[] = {OPD_CPU, OPD_META};
    const int64_t one = 1;
    const opd_dispatch_state before = opd_dispatch_state_get();
    int round, i, different = 0, errors = 0;
    random_state = 7;
    for (round = 0; round < 3000; round++) {
        opd_library *d = lib_new(OPD_FRAGMENT, "told", NULL, "t", 1), *k = lib_new(OPD_IMPL, "told", NULL, "k", 2);
        opd_library *f[FALLBACKS];
        opd_dispatch_state state = before;
        opd_tensor *x, *y;
        char text[8192], expect[4096];
        opd_value v[2], r[1];
        opd_op *op;
        CHECK_INT(opd_def(d, "op(Tensor? a, Tensor? b) -> int"), 0);
        for (i = 0; i < KEYS; i++) {
            const bool through = random_below(3) == 0 && strcmp(keys[i], "Undefined") != 0;
            if (random_below(3)) { continue; }
            CHECK_INT(opd_impl_key(k, "op", keys[i], through ? OPD_FALLTHROUGH : k_below, NULL, NULL), 0);
        }
        for (i = 0; i < FALLBACKS; i++) {
            f[i] = random_below(3) ? NULL : lib_new(OPD_IMPL, "_", fallbacks[i], "f", 3);
            if (f[i]) { CHECK_INT(opd_fallback(f[i], random_below(2) ? k_below : OPD_FALLTHROUGH), 0); }
        }
        OPD_SCOPE {
            op = opd_find("told::op");
            x = opd_tensor_new_on(opd_ints_of(&one, 1), OPD_FLOAT32, opd_device_make(places[random_below(2)], -1));
            y = opd_tensor_new_on(opd_ints_of(&one, 1), OPD_FLOAT32, opd_device_make(places[random_below(2)], -1));
            if (random_below(2)) { (void)opd_tensor_set_requires_grad(x, true); }
            if (random_below(4) == 0) { y = opd_tensor_wrap_key(y, OPD_F_GRAD_WRAPPER); }
            v[0] = random_below(4) ? opd_value_tensor(x) : opd_value_none();
            v[1] = random_below(3) ? opd_value_tensor(y) : opd_value_none();
            for (i = 0; i < BITS; i++) {
                const int what = random_below(6);
                if (what == 0) { state.included ^= OPD_BIT_OF(bits[i]); }
                if (what == 1) { state.excluded ^= OPD_BIT_OF(bits[i]); }
            }
            state.grad_enabled = random_below(3) != 0;
            (void)opd_dispatch_state_set(state);
            CHECK(opd_explain(op, v, 2, text, sizeof text) < sizeof text);
            explained_hops(text, expect, sizeof expect);
            hops[0] = 0;
            opd_log_set(note_hop, NULL);
            (void)opd_dispatch_trace_set(true);
            errors += opd_call_all(op, r, v, 2) != 0;
            (void)opd_dispatch_trace_set(false);
            opd_log_set(NULL, NULL);
            opd_error_clear();
            (void)opd_dispatch_state_set(before);
            if (strcmp(hops, expect) != 0 && different++ < 3) {
                printf("round %d\n%sran %s\nnot %s\n", round, text, hops, expect);
            }
        }
        for (i = 0; i < FALLBACKS; i++) { opd_library_close(f[i]); }
        opd_library_close(k);
        opd_library_close(d);
    }
    CHECK_INT(different, 0);
    CHECK(errors > 100 && errors < 2900);
    CHECK_OK();
}

static int k_number(opd_call *call) { return opd_return_int(call, *(const int64_t *)opd_call_user(call)); }
TEST(calls_at_a_key) {
    static int64_t cpu = 1, cuda = 2;
    opd_library *d = lib_new(OPD_DEF, "atkey", NULL, "d.c", 1);
    const float one = 1;
    const opd_value v = opd_value_tensor(opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32));
    opd_value r[1];
    opd_op *op;
    CHECK_INT(opd_def(d, "op(Tensor x) -> int"), 0);
    CHECK_INT(opd_impl_key(d, "op", "CPU", k_number, &cpu, NULL), 0);
    CHECK_INT(opd_impl_key(d, "op", "CUDA", k_number, &cuda, NULL), 0);
    op = opd_find("atkey::op");
    CHECK_INT(opd_call_at(op, "CUDA", r, &v, 1), 0);
    CHECK_INT(r[0].u.i, 2);
    CHECK_INT(opd_call_at(op, "CPU", r, &v, 1), 0);
    CHECK_INT(r[0].u.i, 1);
    CHECK_INT(opd_call_at(op, "XLA", r, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Could not run 'atkey::op' with arguments from the 'XLA' backend");
    CHECK_INT(opd_call_at(op, "Autograd", r, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Autograd is not the key of a kernel");
    CHECK_INT(opd_call_at(op, "Nokey", r, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "could not parse dispatch key");
    CHECK_INT(opd_call_at(op, "CPU", r, &v, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "missing value for argument 'x'");
    opd_library_close(d);
}

TEST(missing_kernels_name_the_real_ones_first) {
    opd_library *d = lib_new(OPD_DEF, "miss", NULL, "d.c", 1), *c = lib_new(OPD_IMPL, "miss", "CUDA", "cuda.c", 2);
    const float one = 1;
    const opd_value v = opd_value_tensor(opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32));
    const char *kernel, *folded;
    opd_value r[1];
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl(c, "op", k_first), 0);
    CHECK_INT(opd_call_all(opd_find("miss::op"), r, &v, 1), -1);
    kernel = strstr(opd_error_message(), "CUDA [registered at cuda.c:2]");
    folded = strstr(opd_error_message(), "fallbacks for every operator");
    CHECK(kernel != NULL && folded != NULL && kernel < folded);
    CHECK(strstr(opd_error_message(), "BackendSelect") == NULL);             /* folded, not listed */
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Could not run 'miss::op' with arguments from the 'CPU' backend.");
    CHECK(opd_find("miss::ops") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "did you mean miss::op");
    opd_library_close(c);
    opd_library_close(d);
}

//-- the two stock designs (backend_fallback_test.cpp); also examples/mode.c and wrapper.c -----------------------------

static int through;
static int k_mode(opd_call *call) {
    const opd_keyset mode = opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_7);
    through++;
    (void)opd_keys_exclude(mode);
    return opd_redispatch(call, opd_keyset_minus(opd_call_keys(call), mode));
}
static int k_unwrap(opd_call *call) {
    opd_value args[OPD_MAX_ARGS], r[1];
    int i;
    through++;
    for (i = 0; i < opd_call_nargs(call); i++) {
        args[i] = opd_arg_value(call, i);
        if (args[i].tag != OPD_TAG_TENSOR) { continue; }
        if (opd_tensor_unwrap_key(args[i].u.t, OPD_F_USER_6)) { args[i].u.t = opd_tensor_unwrap_key(args[i].u.t,
            OPD_F_USER_6); }
    }
    if (opd_call_all(opd_call_operator(call), r, args, opd_call_nargs(call))) { return -1; }
    return opd_return_tensor(call, opd_tensor_wrap_key(r[0].u.t, OPD_F_USER_6));
}
static opd_tensor *ones_and_norm(opd_tensor *x) {
    static const int64_t sizes[] = {2, 3, 4, 4};
    opd_value v[9];
    if (!x) { x = opd_ones(opd_ints_of(sizes, 4), OPD_FLOAT32); }
    v[0] = opd_value_tensor(x);
    v[1] = v[2] = v[3] = v[4] = opd_value_none();
    v[5] = opd_value_bool(true);
    v[6] = v[7] = opd_value_double(0.1);
    v[8] = opd_value_bool(false);
    return opd_call_op(opd_find("aten::batch_norm"), v, 9);
}
static void name_key(int f, const char *name) {
    if (strcmp(opd_key_name(f), name) != 0) { CHECK_INT(opd_key_define(f, name), f); }
}
TEST_KEEPS(mode_by_a_key_of_the_thread) {         /* the key's name stays */
    opd_library *all;
    opd_key_guard on;
    name_key(OPD_F_USER_7, "TestMode");
    all = lib_new(OPD_IMPL, "_", "TestMode", "m.c", 1);
    CHECK_INT(opd_fallback(all, k_mode), 0);
    through = 0;
    CHECK(ones_and_norm(NULL) != NULL);
    CHECK_INT(through, 0);
    on = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_7));
    CHECK(ones_and_norm(NULL) != NULL);
    opd_keys_restore(on);
    CHECK_INT(through, 2);
    CHECK(ones_and_norm(NULL) != NULL);
    CHECK_INT(through, 2);
    opd_library_close(all);
    CHECK_OK();
}
TEST_KEEPS(wrapper_by_a_key_that_tensors_carry) {
    static const int64_t sizes[] = {2, 3, 4, 4};
    opd_tensor *x = opd_ones(opd_ints_of(sizes, 4), OPD_FLOAT32), *w, *y;
    opd_library *all;
    int64_t live = 0;
    int i;
    opd_scope scope;
    name_key(OPD_F_USER_6, "TestWrapper");
    all = lib_new(OPD_IMPL, "_", "TestWrapper", "w.c", 1);
    CHECK_INT(opd_fallback(all, k_unwrap), 0);
    through = 0;
    scope = opd_scope_open();
    w = opd_tensor_wrap_key(x, OPD_F_USER_6);
    CHECK(opd_tensor_unwrap_key(w, OPD_F_USER_6) == x && !opd_tensor_unwrap_key(w, OPD_F_USER_7));
    CHECK(!opd_tensor_unwrap_key(x, OPD_F_USER_6) && !opd_tensor_unwrap_key(NULL, OPD_F_USER_6));
    CHECK(opd_numel(w) == opd_numel(x) && opd_data(w) == NULL);
    CHECK_INT(opd_tensor_device(w).type, OPD_CPU);
    y = ones_and_norm(w);
    CHECK_INT(through, 1);
    CHECK(opd_tensor_unwrap_key(y, OPD_F_USER_6) != NULL && opd_tensor_unwrap_key(y, OPD_F_USER_6) != x);
    CHECK(ones_and_norm(x) != NULL);
    CHECK_INT(through, 1);
    CHECK(opd_tensor_wrap_key(NULL, OPD_F_USER_6) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the tensor is NULL");
    CHECK(opd_tensor_wrap_key(x, OPD_KEY_CPU) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "CPU is not a key that a wrapper can have");
    CHECK(opd_tensor_wrap_key(x, OPD_KEY_AUTOGRAD) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Autograd is not a key that a wrapper can have");
    opd_scope_close(&scope);
    for (i = 0; i < 2; i++) {                     /* the second time everything is warm */
        live = opd_memory_stats().live;
        scope = opd_scope_open();
        CHECK(opd_tensor_wrap_key(opd_exp(x), OPD_F_USER_6) != NULL);        /* nobody else holds what is inside */
        opd_scope_close(&scope);
    }
    CHECK_INT(opd_memory_stats().live, live);
    opd_library_close(all);
    w = opd_tensor_wrap_key(x, OPD_F_USER_6);     /* nothing takes care of it now */
    CHECK(opd_exp(w) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Could not run 'aten::exp' with arguments from the 'TestWrapper' backend");
}
TEST_KEEPS(fallthrough_and_one_kernel) {
    opd_library *all, *one;
    opd_key_guard on;
    name_key(OPD_F_USER_7, "TestMode");
    all = lib_new(OPD_IMPL, "_", "TestMode", "m.c", 1);
    one = lib_new(OPD_IMPL, "aten", "TestMode", "m.c", 2);
    CHECK_INT(opd_fallback(all, OPD_FALLTHROUGH), 0);
    CHECK_INT(opd_impl(one, "batch_norm", k_mode), 0);
    through = 0;
    on = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_7));
    CHECK(ones_and_norm(NULL) != NULL);           /* ones falls through */
    opd_keys_restore(on);
    CHECK_INT(through, 1);
    opd_library_close(one);
    opd_library_close(all);
    CHECK_OK();
}
/* A user key in each gap is called between its neighbours. */
static char order[256];
static int k_order(opd_call *call) {
    const opd_key key = opd_keyset_highest(opd_call_keys(call));
    (void)snprintf(order + strlen(order), sizeof order - strlen(order), "%s ", opd_key_name(key));
    if (key == OPD_KEY_CPU) { return opd_return_value(call, opd_arg_value(call, 0)); }
    return opd_redispatch(call, opd_keyset_remove(opd_call_keys(call), key));
}
TEST_KEEPS(user_keys_run_between_their_neighbours) {
    static const int gaps[] = {OPD_F_USER_0, OPD_F_USER_1, OPD_F_USER_2, OPD_F_USER_3, OPD_F_USER_4, OPD_F_USER_5,
                               OPD_F_USER_6, OPD_F_USER_7};
    opd_library *d = lib_new(OPD_DEF, "gaps", NULL, "d.c", 1);
    const float one = 1;
    const opd_value v = opd_value_tensor(opd_tensor_set_requires_grad(
        opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32), true));
    opd_keyset set = opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_TRACER);
    opd_key_guard on;
    opd_value r[1];
    size_t i;
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    for (i = 0; i < 8; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "Gap%d", (int)i);
        if (i < 6) { name_key(gaps[i] + 1, name); }
        CHECK_INT(opd_impl_key(d, "op", opd_key_name(gaps[i] + (i < 6 ? 1 : 0)), k_order, NULL, NULL), 0);
        set = opd_keyset_add(set, gaps[i] + (i < 6 ? 1 : 0));
    }
    CHECK_INT(opd_impl_key(d, "op", "CPU", k_order, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(d, "op", "AutogradCPU", k_order, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(d, "op", "ADInplaceOrView", k_order, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(d, "op", "BackendSelect", k_order, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(d, "op", "Tracer", k_order, NULL, NULL), 0);
    order[0] = 0;
    on = opd_keys_include(set);
    CHECK_INT(opd_call_all(opd_find("gaps::op"), r, &v, 1), 0);
    opd_keys_restore(on);
    CHECK_STR(order, "TestMode TestWrapper Gap5 Tracer Gap4 AutogradCPU Gap3 ADInplaceOrView Gap2 Gap1 BackendSelect "
              "Gap0 CPU ");
    opd_library_close(d);
    CHECK_OK();
}

//-- memory ------------------------------------------------------------------------------------------------------------

static bool register_some(opd_library **libs) {
    opd_op_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.schema = "card(Tensor self) -> Tensor";
    desc.cpu = k_first;
    desc.inplace = "card_";
    desc.out = "card.out";
    libs[0] = opd_library_open(OPD_FRAGMENT, "mem", NULL, "m.c", 1);
    libs[1] = opd_library_open(OPD_IMPL, "_", opd_key_name(OPD_F_GRAD_WRAPPER), "m.c", 2);
    return libs[0] && libs[1] && opd_def(libs[0], "op(Tensor x) -> Tensor") == 0 &&
        opd_impl_key(libs[0], "op", "CPU", k_first, NULL, NULL) == 0 && opd_fallback(libs[1], k_second) == 0 &&
        opd_def_function(libs[0], "fn", &scaled_op) == 0 && opd_define(libs[0], &desc) == 0;
}
TEST(allocations_fail_one_by_one) {
    const opd_registry_info before = opd_registry_stats();
    opd_library *libs[2];
    int64_t n;
    bool done = false;
    for (n = 1; !done && n < 1000; n++) {
        (void)opd_memory_fail_at(n, false);
        done = register_some(libs);
        (void)opd_memory_fail_at(0, false);
        CHECK(done || opd_error_code() == OPD_ERROR_MEMORY);
        opd_error_clear();
        CHECK_INT(opd_check_invariants(), 0);
        if (libs[0] && !opd_find_quiet("mem::card")) { CHECK(!opd_find_quiet("mem::card_") &&
            !opd_find_quiet("mem::card.out")); }
        opd_library_close(libs[1]);
        opd_library_close(libs[0]);
        CHECK_INT(opd_registry_stats().kernels, before.kernels);
        CHECK_INT(opd_registry_stats().fallbacks, before.fallbacks);
        CHECK_INT(opd_registry_stats().operators, before.operators);
    }
    CHECK(done && n > 20);
}

//-- library blocks that stand twice -----------------------------------------------------------------------------------

OPD_LIBRARY(standing, lib) {
    opd_def(lib, "first(Tensor x) -> Tensor");
    opd_def(lib, "second(Tensor x) -> Tensor");
}
OPD_LIBRARY_IMPL(standing, CPU, lib) { opd_impl(lib, "first", k_first); }
OPD_LIBRARY_IMPL(standing, CPU, lib) { opd_impl(lib, "second", k_twice); }
OPD_LIBRARY_IMPL(standing, Autocast, lib) { opd_impl(lib, "first", OPD_FALLTHROUGH); }
OPD_LIBRARY_IMPL(standing, Autocast, lib) { opd_impl(lib, "second", OPD_FALLTHROUGH); }
OPD_LIBRARY_FRAGMENT(standing, lib) { opd_def(lib, "third() -> ()"); } OPD_LIBRARY_FRAGMENT(standing, lib) {
    opd_def(lib, "fourth() -> ()"); }
OPD_LIBRARY_IMPL(standing, Autocast, lib) { opd_impl(lib, "third", OPD_FALLTHROUGH); }
OPD_LIBRARY_FRAGMENT(standing, lib) { opd_def(lib, "fifth() -> ()"); }
TEST_KEEPS(blocks_stand_any_number_of_times) {
    static const char *const names[5] = {"standing::first", "standing::second", "standing::third", "standing::fourth",
                                         "standing::fifth"};
    opd_tensor *x;
    char text[4000];
    int i;
    OPD_USE_LIBRARY(standing);
    OPD_USE_LIBRARY(standing_CPU);
    OPD_USE_LIBRARY(standing_Autocast);
    OPD_USE_LIBRARY(standing_Autocast);           /* again: nothing happens */
    x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    for (i = 0; i < 5; i++) {
        opd_op *op = opd_find(names[i]);
        CHECK_OR_RETURN(op != NULL);
        (void)opd_dump(op, text, sizeof text);
        CHECK((strstr(text, "Autocast") != NULL) == (i < 3));
    }
    CHECK_NEAR(opd_item_f64(OPD_CALL(opd_find(names[0]), opd_sum(x))), 2, 0);
    CHECK_NEAR(opd_item_f64(OPD_CALL(opd_find(names[1]), opd_sum(x))), 4, 0);
    CHECK_OK();
    CHECK_INT(opd_check_invariants(), 0);
}

CHECK_MAIN()
