// Fuzz target for registration and calls: see fuzz.h for how to build and run it.  Memory may grow with the
// registrations.  Input: a script, with one byte for each step and some for its arguments.  After every step, the
// invariants hold.  A step that fails sets an error and changes nothing.  At the end everything is closed: the registry
// is as it was at the beginning, and each user pointer was destroyed once.
#include "fuzz.h"

#define PICK(a) ((a)[next() % COUNT(a)])

//-- kernels -----------------------------------------------------------------------------------------------------------

enum { LIBS = 6 };
static opd_library *libs[LIBS];
static int made, unmade;
static int *ticket_new(void) {
    int *t = (int *)malloc(sizeof *t);
    MUST(t);
    *t = 77;
    made++;
    return t;
}
static void ticket_free(void *user) { MUST(*(int *)user == 77); *(int *)user = 0; free(user); unmade++; }

static void look(opd_call *call) {
    const int *t = (const int *)opd_call_user(call);
    MUST(!t || *t == 77);
    MUST(opd_op_name(opd_call_operator(call))[0]);
}
static int k_none(opd_call *call) { look(call); return 0; }
static int k_first(opd_call *call) { look(call); return opd_return_value(call, opd_arg_value(call, 0)); }
static int k_int(opd_call *call) { look(call); return opd_return_int(call, 5); }
static int k_fails(opd_call *call) { look(call); return opd_fail(OPD_ERROR_USER, "on purpose"); }
static int k_below(opd_call *call) {
    const opd_keyset keys = opd_call_keys(call);
    const opd_key highest = opd_keyset_highest(keys);
    look(call);
    return opd_redispatch(call, opd_keyset_remove(keys, highest));
}
static int k_again(opd_call *call) {
    opd_value rets[16];
    int mark = opd_error_mark();
    look(call);
    if (opd_call_all(opd_call_operator(call), rets, opd_call_args(call), opd_call_nargs(call))) {
        (void)opd_error_rewind(mark); }
    look(call);
    return opd_return_value(call, opd_arg_value(call, 0));
}
static int k_closes(opd_call *call) {
    look(call);
    opd_library_close(libs[0]);
    libs[0] = NULL;
    look(call);
    return opd_return_value(call, opd_arg_value(call, 0));
}
static int k_forgets(opd_call *call) {
    look(call);
    (void)opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_4));
    (void)opd_scope_open();
    return opd_return_value(call, opd_arg_value(call, 0));
}
static const opd_kernel kernels[] = {k_none, k_first, k_int, k_fails, k_below, k_again, k_closes, k_forgets,
    opd_fallthrough};

static int64_t f_sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static opd_tensor *f_same(opd_tensor *t) { return t; }
static float f_bad(float x) { return x; }
OPD_FUNCTION(sum_op, f_sum, int64_t, int64_t, int64_t)
OPD_FUNCTION(same_op, f_same, opd_tensor *, opd_tensor *)
OPD_FUNCTION(bad_op, f_bad, float, float)
static const opd_function *const functions[] = {&sum_op, &same_op, &bad_op};

//-- names in a script -------------------------------------------------------------------------------------------------

static const char *const names[] = {"fz::a", "fz::b", "fz::b.over", "fz::c", "gz::a", "fz::a_"};
static const char *const local[] = {"a", "b", "b.over", "c", "fz::a", "gz::a", "a_", "a(Tensor x)"};
static const char *const schemas[] = {
    "a(Tensor x) -> Tensor", "a(int x, int y) -> int", "b(Tensor x) -> Tensor", "b.over(Tensor[] x) -> ()",
    "c(Tensor(a!) x, *, Tensor? y=None) -> Tensor(a!)", "a_(Tensor(a!) self) -> Tensor(a!)",
       "gz::a(Tensor x) -> Tensor", "b(",
    "c(Tensor a, Tensor a) -> Tensor", "a(Tensor x) -> (Tensor, Tensor)"};
static const char *const keys[] = {
    "CPU", "CUDA", "Meta", "XLA", "FPGA", "AutogradCPU", "AutogradOther", "Autograd", "CompositeImplicitAutograd",
    "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "Tracer", "BackendSelect", "ADInplaceOrView",
    "Functionalize", "FuncTorchGradWrapper", "Undefined", "SparseCPU", "NestedTensorCPU", "NoSuchKey",
    "FuncTorchBatchedDecomposition", "AutogradNestedTensor"};
static const char *const spaces[] = {"fz", "gz", "_", "aten", ""};
static const opd_library_kind kinds[] = {OPD_DEF, OPD_FRAGMENT, OPD_IMPL, OPD_IMPL};

static const char *key_or_none(void) { const unsigned k = next(); return k % 4 ? keys[k / 4 % COUNT(keys)] : NULL; }

/* What registration can change, as text.  (The rest is counted once more at the end.) */
static size_t state(char *buf, size_t cap) {
    size_t n = 0, i;
    buf[0] = 0;
    for (i = 0; i < COUNT(names); i++) {
        const opd_op *op = opd_find_quiet(names[i]);
        if (!op) { continue; }
        n += opd_dump(op, buf + n, cap - n);
        if (opd_op_schema(op)) { n += opd_dump_table(op, buf + n, cap - n); }
        MUST(n < cap);
    }
    return n;
}

//-- steps -------------------------------------------------------------------------------------------------------------

static int step_open(void) {
    const unsigned i = next() % LIBS;
    const opd_library_kind kind = PICK(kinds);
    const char *ns = PICK(spaces), *key = kind == OPD_IMPL ? key_or_none() : NULL;
    if (libs[i]) { return 0; }
    libs[i] = opd_library_open(kind, ns, key, "f.c", (int)next());
    return libs[i] ? 0 : -1;
}
static int step_close(void) {
    const unsigned i = next() % LIBS;
    opd_library_close(libs[i]);
    libs[i] = NULL;
    return 0;
}
static int step_def(opd_library *lib) {
    const opd_def_options options = {next() & 3u, (opd_alias_kind)(next() & 1), (int32_t)(next() & 1)};
    return opd_def_with(lib, PICK(schemas), &options);
}
static int step_impl(opd_library *lib) {
    const char *name = PICK(local), *key = key_or_none();
    const opd_kernel kernel = PICK(kernels);
    int *ticket = next() & 1 ? ticket_new() : NULL;
    const int rc = opd_impl_key(lib, name, key, kernel, ticket, ticket ? ticket_free : NULL);
    if (rc && ticket) { ticket_free(ticket); }
    return rc;
}
static int step_define(opd_library *lib) {
    opd_op_desc d;
    const unsigned what = next();
    int rc;
    memset(&d, 0, sizeof d);
    d.schema = PICK(schemas);
    d.cpu = what & 1 ? PICK(kernels) : NULL;
    d.fake = what & 2 ? PICK(kernels) : NULL;
    d.any = what & 4 ? PICK(kernels) : NULL;
    d.composite = what & 8 ? PICK(kernels) : NULL;
    d.backward = what & 16 ? OPD_NOT_DIFFERENTIABLE : NULL;
    d.inplace = what & 32 ? "a_" : NULL;
    d.out = what & 64 ? "a.out" : NULL;
    d.save = what & 128 ? "x" : NULL;
    d.same_again = (int32_t)(next() & 1);
    d.user = ticket_new();
    d.destroy = ticket_free;
    rc = opd_define(lib, &d);
    if (rc) { ticket_free(d.user); }
    return rc;
}

static void step_call(opd_tensor *const *tensors) {
    opd_op *op = opd_find_quiet(PICK(names));
    const unsigned how = next();
    opd_value v[3], r[16];
    opd_keyword kw;
    char text[600];
    v[0] = how & 1 ? opd_value_int((int64_t)how) : how & 2 ? opd_value_tensors(tensors, (int64_t)(how >> 2 & 3))
        : opd_value_tensor(tensors[how >> 2 & 1]);
    v[1] = how & 16 ? opd_value_tensor(tensors[1]) : opd_value_int(3);
    v[2] = opd_value_none();
    kw.name = "y";
    kw.value = v[1];
    switch (how >> 5) {
    case 0: (void)opd_call_at(op, PICK(keys), r, v, (int)(next() % 3)); break;
    case 1: (void)opd_call_keywords(op, r, v, 1, &kw, 1); break;
    case 2: (void)opd_explain(op, v, (int)(next() % 3), text, sizeof text); break;
    default: (void)opd_call_all(op, r, v, (int)(next() % 4));
    }
}

static void told(void *user, opd_op *op) { MUST(user == names && opd_op_schema(op)); }

static void step(opd_tensor *const *tensors) {
    static char before[1 << 18], after[1 << 18];
    static opd_listener *listener;
    const unsigned what = next() % 16;
    opd_library *lib = libs[next() % LIBS];
    char text[64];
    int rc = 0;
    (void)state(before, sizeof before);
    if (what == 15) { (void)opd_memory_fail_at(1 + (int64_t)(next() % 24), (next() & 1) != 0); }
    switch (what == 15 ? next() % 8 : what) {
    case 0: rc = step_open(); break;
    case 1: rc = step_close(); break;
    case 2: case 3: rc = step_def(lib); break;
    case 4: case 5: rc = step_impl(lib); break;
    case 6: rc = opd_fallback(lib, PICK(kernels)); break;
    case 7: rc = step_define(lib); break;
    case 8: rc = opd_def_function(lib, PICK(local), PICK(functions)); break;
    case 9: rc = opd_impl_function(lib, PICK(local), key_or_none(), PICK(functions)); break;
    case 10: case 11: case 12: step_call(tensors); break;
    case 13: rc = next() & 1 ? opd_def(lib, next_text(text, sizeof text)) : opd_impl(lib, next_text(text,
                       sizeof text), k_first); break;
    default:
        if (next() & 1) { (void)opd_key_parse(next_text(text, sizeof text)); }
        else if (listener) { opd_listener_remove(listener); listener = NULL; }
        else { listener = opd_listener_add(told, told, (void *)(uintptr_t)names); }
    }
    (void)opd_memory_fail_at(0, false);
    if (at >= end && listener) { opd_listener_remove(listener); listener = NULL; }
    if (rc) {                                     /* refused: it said why, and nothing is changed */
        MUST(!opd_ok() && opd_error_message()[0]);
        opd_error_clear();
        (void)state(after, sizeof after);
        if (strcmp(before, after)) { fprintf(stderr, "step %u changed\n%s\nto\n%s\n", what, before, after); }
        MUST(!strcmp(before, after));
    }
    opd_error_clear();
    if (opd_check_invariants()) { fprintf(stderr, "%s\n", opd_error_message()); abort(); }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const float one = 1;
    const opd_dispatch_state defaults = opd_dispatch_state_get();
    opd_registry_info begin, done;
    opd_tensor *tensors[3];
    opd_scope scope;
    unsigned flags;
    int i;
    opd_log_set(log_nothing, NULL);
    (void)opd_find_quiet("aten::add.Tensor");
    begin = opd_registry_stats();
    scope = opd_scope_open();
    made = unmade = 0;
    at = data;
    end = data + size;
    flags = next();
    tensors[0] = opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32);
    tensors[1] = opd_tensor_new_on(opd_ints_of(NULL, 0), OPD_FLOAT32, opd_device_make(OPD_META, -1));
    tensors[2] = tensors[0];
    MUST(opd_ok());
    if (flags & 1) { (void)opd_tensor_set_requires_grad(tensors[0], true); }
    if (flags & 2) { (void)opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_TRACER)); }
    if (flags & 4) { (void)opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_GRAD_WRAPPER)); }
    if (flags & 8) { (void)opd_keys_exclude(OPD_KEYS_AUTOGRAD); }
    if (flags & 16) { (void)opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_KEY_AUTOGRAD_OTHER)); }
    for (i = 0; i < 40 && at < end; i++) { step(tensors); }
    for (i = 0; i < LIBS; i++) { opd_library_close(libs[(i + (int)flags) % LIBS]);
        libs[(i + (int)flags) % LIBS] = NULL; }
    opd_scope_close(&scope);
    MUST(opd_ok() && opd_finish() == 0);
    (void)opd_dispatch_state_set(defaults);
    done = opd_registry_stats();
    MUST(opd_ok());
    MUST(made == unmade);
    MUST(done.retired == 0);
    MUST(done.dangling == begin.dangling && done.fallbacks == begin.fallbacks && done.libraries == begin.libraries);
    MUST(done.operators >= begin.operators && done.kernels >= begin.kernels);      /* built-in ones register lazily */
    return 0;
}
