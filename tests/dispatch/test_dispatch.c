/* Registration and dispatch: computed tables, libraries, calls, redispatch.  The tables are those of PyTorch's
   test_dispatch.py. */
#include "../../opdispatch.h"
#include "../check.h"

//-- helpers -----------------------------------------------------------------------------------------------------------

static char ran[256];                             /* letters of the kernels that ran */
static void note(const char *what) {
    if (strlen(ran) + strlen(what) < sizeof ran) { strcat(ran, what); }
}

/* Records the text in its user pointer, and returns its first argument. */
static int k_note(opd_call *call) {
    note((const char *)opd_call_user(call));
    return opd_return_value(call, opd_arg_value(call, 0));
}
static int k_first(opd_call *call) { return opd_return_value(call, opd_arg_value(call, 0)); }

static opd_library *lib_new(opd_library_kind kind, const char *ns, const char *key, const char *file, int line) {
    opd_library *lib = opd_library_open(kind, ns, key, file, line);
    CHECK(lib != NULL);
    return lib;
}
static opd_tensor *cpu1(void) {
    static const float one[] = {1};
    return opd_tensor_from(one, opd_ints_of(NULL, 0), OPD_FLOAT32);
}
static opd_tensor *meta1(void) { return opd_tensor_new_on(opd_ints_of(NULL, 0), OPD_FLOAT32, opd_device_make(OPD_META, -1)); }
static opd_tensor *call1(opd_op *op, opd_tensor *t) {
    opd_value v = opd_value_tensor(t);
    return opd_call_op(op, &v, 1);
}

/* Returns the entry of a key in the dump of a table, such as "c kernel": the kernel, and why it was chosen. */
static const char *slot_of(const char *dump, const char *key, char *out, size_t cap) {
    const char *p = dump;
    size_t n = strlen(key);
    while (p && *p && !(strncmp(p, key, n) == 0 && p[n] == ':' && p[n + 1] == ' ')) {
        p = strchr(p, '\n');
        if (p) { p++; }
    }
    if (!p || !*p) { (void)snprintf(out, cap, "missing"); return out; }
    {
        const char *at = strstr(p, "registered at "), *tag = strchr(p, '[');
        int m = (int)(tag ? strcspn(tag + 1, "]") : 0);
        if (tag && strncmp(tag, "[backend fallback]", 18) == 0) { (void)snprintf(out, cap, "fallback"); }
        else if (tag && (!at || at > tag)) { (void)snprintf(out, cap, "%.*s", m, tag + 1); }
        else { (void)snprintf(out, cap, "%c %.*s", at ? at[14] : '?', m, tag ? tag + 1 : ""); }
    }
    return out;
}

//-- the kernel that a call runs, against the table --------------------------------------------------------------------

#define LAYERS 9
#define PASSING_BY (OPD_F_USER_2 + 2)
/* Functionalities from the highest down, and the slots that a CPU tensor's call has there. */
static const int layers[LAYERS] = {OPD_F_AUTOGRAD_NESTED_TENSOR, OPD_F_AUTOGRAD, OPD_F_AUTOGRAD_OTHER,
                                   OPD_F_AD_INPLACE_OR_VIEW, PASSING_BY, OPD_F_CONJUGATE, OPD_F_FUNCTIONALIZE,
                                   OPD_F_BACKEND_SELECT, OPD_F_DENSE};
static opd_key layer_slot(int f) {
    return f == OPD_F_AUTOGRAD ? opd_key_parse("AutogradCPU") : f == OPD_F_DENSE ? opd_key_parse("CPU") : (opd_key)f;
}

/* The letter that the dump of a table names for a call with these functionalities: from the highest on, but for what
   falls through and for the fallback of autograd keys, which passes calls on to below all of them. */
static char from_table(const char *dump, uint64_t functionality) {
    int i;
    for (i = 0; i <= LAYERS; i++) {
        char line[80];
        const char *p;
        if (i < LAYERS && !(functionality >> (layers[i] - 1) & 1)) { continue; }
        (void)snprintf(line, sizeof line, "\n%s: ", opd_key_name(i < LAYERS ? layer_slot(layers[i]) : OPD_KEY_UNDEFINED));
        p = strstr(dump, line);
        if (!p) { return '?'; }
        p += strlen(line);
        if (strncmp(p, "registered at opdispatch.h", 26) == 0) { functionality &= OPD_BIT_OF(OPD_F_AUTOGRAD_OTHER) - 1; }
        else if (strncmp(p, "fallthrough ", 12) != 0) { return *p; }
    }
    return '?';
}

TEST(what_requires_grad_does_not_choose_another_kernel) {
    static const char *const at[] = {"CompositeImplicitAutograd", "CompositeExplicitAutograd",
        "CompositeExplicitAutogradNonFunctional", "CPU", "ADInplaceOrView", "BackendSelect", "Conjugate",
        "Functionalize", "PassingBy", "Autograd", "AutogradCPU", "AutogradOther", "AutogradNestedTensor", "Sparse"};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"};
    static char dump[20000];
    uint32_t seed = 7;
    int round, i, j;
    if (strcmp(opd_key_name(PASSING_BY), "PassingBy") != 0) { (void)opd_key_define(PASSING_BY, "PassingBy"); }
    for (round = 0; round < 1200 && check_failures == 0; round++) {
        opd_library *lib = lib_new(OPD_FRAGMENT, "skips", NULL, "x", 0);
        opd_tensor *plain = cpu1(), *wants = opd_tensor_set_requires_grad(cpu1(), true);
        uint32_t chosen = 0;
        opd_op *op;
        CHECK_INT(opd_def(lib, "op(Tensor x) -> Tensor"), 0);
        for (i = 0; i < 4; i++) {
            seed = seed * 1664525u + 1013904223u;
            chosen |= 1u << (i == 0 ? (seed >> 28) % 3 : (seed >> 16) % 14);
        }
        for (i = 0; i < 14; i++) {
            const bool passes = (seed >> i & 7) == 0;
            if (!(chosen >> i & 1)) { continue; }
            opd_library_at(lib, names[i], 0);
            CHECK_INT(opd_impl_key(lib, "op", at[i], passes ? opd_fallthrough : k_note, (void *)(uintptr_t)names[i],
                                   NULL), 0);
        }
        op = opd_find("skips::op");
        for (i = 0; i < 8; i++) {                 /* modes: keys that the thread includes */
            uint64_t bits = OPD_BIT_OF(OPD_F_DENSE) | OPD_BIT_OF(OPD_F_AUTOGRAD) |
                            OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW) | OPD_BIT_OF(OPD_F_BACKEND_SELECT);
            opd_key_guard guard;
            char wanted;
            seed = seed * 1664525u + 1013904223u;
            for (j = 0; i && j < LAYERS; j++) { if ((seed >> (8 + 2 * j) & 3) == 0) { bits |= OPD_BIT_OF(layers[j]); } }
            dump[0] = '\n';
            (void)opd_dump_table(op, dump + 1, sizeof dump - 1);
            wanted = from_table(dump, bits);
            guard = opd_keys_include(opd_keyset_make(bits & ~OPD_BIT_OF(OPD_F_DENSE) & ~OPD_BIT_OF(OPD_F_AUTOGRAD), 0));
            for (j = 0; j < 3; j++) {
                opd_dispatch_state state = opd_dispatch_state_get(), was;
                ran[0] = 0;
                state.grad_enabled = j != 2;
                was = opd_dispatch_state_set(state);
                (void)call1(op, j ? wants : plain);
                (void)opd_dispatch_state_set(was);
                CHECK_INT(opd_ok(), wanted >= 'a');
                opd_error_clear();
                if (wanted < 'a') { continue; }   /* no kernel, or an ambiguous one: an error with and without grad */
                if (ran[0] != wanted) { printf("grad %d, registered %x: %c ran\n%s\n", j, chosen, ran[0], dump); }
                CHECK_INT(ran[0], wanted);
            }
            opd_keys_restore(guard);
        }
        opd_library_close(lib);
    }
}

//-- values and the types of arguments ----------------------------------------------------------------------------------

static opd_value got;
static int k_keep(opd_call *call) {
    got = opd_arg_value(call, 0);
    if (got.tag == OPD_TAG_LIST && got.n) { got.u.i = got.u.list[0].tag; }    /* lives as long as the call */
    if (got.tag == OPD_TAG_COMPLEX) { got.u.d = got.u.c[0]; }
    if (got.tag == OPD_TAG_INTS && got.n) { got.u.i = got.u.ints[got.n - 1]; }
    if (got.tag == OPD_TAG_FLOATS && got.n) { got.u.d = got.u.floats[got.n - 1]; }
    return 0;
}
/* Returns the tag that a kernel gets for an argument of this type, or -1 if the value is refused. */
static int bound_tag(const char *type, opd_value v) {
    opd_library *lib = lib_new(OPD_FRAGMENT, "bind", NULL, "t", 1);
    char schema[200];
    int rc;
    (void)snprintf(schema, sizeof schema, "op(%s x) -> ()", type);
    CHECK_INT(opd_def(lib, schema), 0);
    CHECK_INT(opd_impl_key(lib, "op", "CompositeExplicitAutograd", k_keep, NULL, NULL), 0);
    got.tag = -1;
    rc = opd_call_all(opd_find("bind::op"), NULL, &v, 1);
    if (rc) { CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected a value of type"); got.tag = -1; }
    opd_library_close(lib);
    return got.tag;
}
TEST(values_bind_to_every_type) {
    static const int64_t ints[] = {1, 2, 3};
    static const double floats[] = {1.5, 2.5};
    static const bool bools[] = {true, false};
    opd_tensor *t = cpu1(), *tensors[2];
    opd_value mixed[2], some[2], whole[2], strings[1];
    tensors[0] = t; tensors[1] = NULL;
    mixed[0] = opd_value_int(1); mixed[1] = opd_value_double(2.5);
    some[0] = opd_value_int(1); some[1] = opd_value_none();
    whole[0] = opd_value_int(1); whole[1] = opd_value_int(7);
    strings[0] = opd_value_str("s");
    CHECK_INT(bound_tag("Any", opd_value_tensor(t)), OPD_TAG_TENSOR);
    CHECK_INT(bound_tag("Any", opd_value_int(1)), OPD_TAG_INT);
    CHECK_INT(bound_tag("Any", opd_value_str("s")), OPD_TAG_STR);
    CHECK_INT(bound_tag("Any", opd_value_none()), OPD_TAG_NONE);
    CHECK_INT(bound_tag("Any", opd_value_tensors(tensors, 2)), OPD_TAG_TENSORS);
    CHECK_INT(bound_tag("Dict(str, int)", opd_value_ints(ints, 3)), -1);
    CHECK_INT(bound_tag("Dict(str, int)", opd_value_tensors(tensors, 1)), -1);
    CHECK_INT(bound_tag("Dict(str, int)", opd_value_object(t)), OPD_TAG_OBJECT);
    CHECK_INT(bound_tag("Scalar[]", opd_value_ints(ints, 3)), OPD_TAG_LIST);
    CHECK_INT(got.u.i, OPD_TAG_INT);
    CHECK_INT(bound_tag("Scalar[]", opd_value_doubles(floats, 2)), OPD_TAG_LIST);
    CHECK_INT(got.u.i, OPD_TAG_FLOAT);
    CHECK_INT(bound_tag("Scalar[]", opd_value_bools(bools, 2)), OPD_TAG_LIST);
    CHECK_INT(bound_tag("Scalar[]", opd_value_list(mixed, 2)), OPD_TAG_LIST);
    CHECK_INT(bound_tag("Scalar[]", opd_value_list(some, 2)), -1);
    CHECK_INT(bound_tag("int[]", opd_value_list(whole, 2)), OPD_TAG_INTS);
    CHECK_INT(got.u.i, 7);
    CHECK_INT(bound_tag("int[]", opd_value_list(mixed, 2)), -1);
    CHECK_INT(bound_tag("int[]", opd_value_doubles(floats, 2)), -1);
    CHECK_INT(bound_tag("float[]", opd_value_list(mixed, 2)), OPD_TAG_FLOATS);
    CHECK_NEAR(got.u.d, 2.5, 0);
    CHECK_INT(bound_tag("float[]", opd_value_ints(ints, 3)), OPD_TAG_FLOATS);
    CHECK_INT(bound_tag("float[3]", opd_value_int(4)), OPD_TAG_FLOATS);
    CHECK_NEAR(got.u.d, 4, 0);
    CHECK_INT(bound_tag("int[3]", opd_value_int(4)), OPD_TAG_INTS);
    CHECK_INT(bound_tag("int[3]", opd_value_double(4)), -1);
    CHECK_INT(bound_tag("int?[]", opd_value_list(some, 2)), OPD_TAG_LIST);
    CHECK_INT(bound_tag("int?[]", opd_value_ints(ints, 3)), OPD_TAG_LIST);         /* one form for both */
    CHECK_INT(got.n, 3);
    CHECK_INT(bound_tag("int?[]", opd_value_ints(NULL, 0)), OPD_TAG_LIST);
    CHECK_INT(bound_tag("int[][]", opd_value_list(NULL, 0)), OPD_TAG_LIST);
    CHECK_INT(bound_tag("str[]", opd_value_list(strings, 1)), OPD_TAG_LIST);
    CHECK_INT(bound_tag("str[]", opd_value_list(mixed, 2)), -1);
    CHECK_INT(bound_tag("complex", opd_value_double(1.5)), OPD_TAG_COMPLEX);
    CHECK_NEAR(got.u.d, 1.5, 0);
    CHECK_INT(bound_tag("complex", opd_value_int(2)), OPD_TAG_COMPLEX);
    CHECK_INT(bound_tag("Union(int, str)", opd_value_str("s")), OPD_TAG_STR);
    CHECK_INT(bound_tag("Union(int, str)", opd_value_double(1)), -1);
}

static int k_five(opd_call *call) { return opd_return_int(call, 5); }
TEST(calls_without_arguments) {
    opd_library *lib = lib_new(OPD_FRAGMENT, "bind", NULL, "t", 1);
    opd_value r[1];
    CHECK_INT(opd_def(lib, "five() -> int"), 0);
    CHECK_INT(opd_impl(lib, "five", k_five), 0);
    CHECK_INT(OPD_CALL_N(opd_find("bind::five"), r), 0);
    CHECK_INT(r[0].u.i, 5);
    CHECK(OPD_CALL(opd_find("bind::five"), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected at most 0 argument(s) for operator 'bind::five', but received 16");
    opd_library_close(lib);
}

static int k_nothing(opd_call *call) { (void)call; return 0; }
static int k_undefined(opd_call *call) { return opd_return_value(call, opd_value_none()); }
static int k_text(opd_call *call) {
    return opd_return_value(call, opd_value_str("five")) || opd_return_tensor(call, opd_ones(OPD_INTS(2), OPD_FLOAT32));
}
static int k_list(opd_call *call) {
    opd_tensor *one = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    return opd_return_tensors(call, &one, 1);
}
TEST(results_of_another_type) {
    static const struct { const char *schema; int (*kernel)(opd_call *); } rows[] = {
        {"five() -> int", k_five}, {"nothing() -> ()", k_nothing}, {"undefined() -> Tensor?", k_undefined},
        {"text() -> (str, Tensor)", k_text}, {"list() -> Tensor[]", k_list}};
    opd_library *lib = lib_new(OPD_FRAGMENT, "other", NULL, "t", 1);
    opd_tensor *out[2];
    char name[32], whole[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(rows[i].schema, "("), rows[i].schema);
        CHECK_INT(opd_def(lib, rows[i].schema), 0);
        CHECK_INT(opd_impl(lib, name, rows[i].kernel), 0);
        (void)snprintf(whole, sizeof whole, "other::%s", name);
        CHECK(OPD_CALL(opd_find(whole)) == NULL);             /* without an error if there is no result, or None */
        CHECK(opd_ok() == (i == 1 || i == 2));
        if (i == 0) { CHECK_ERROR(OPD_ERROR_ARGUMENT, "other::five() returns a value of type 'int', but OPD_CALL and"); }
        if (i == 3) { CHECK_ERROR(OPD_ERROR_ARGUMENT, "type 'str', but OPD_CALL and opd_call_op return a tensor: use opd"); }
        if (i == 4) { CHECK_ERROR(OPD_ERROR_ARGUMENT, "type 'List[Tensor]', but OPD_CALL and opd_call_op return a tensor"
                                  ": use opd_call_list or OPD_CALL_N"); }
        CHECK_INT(opd_call_tensors(opd_find(whole), out, NULL, 0), i == 1 || i == 2 ? 0 : -1);
        if (i == 3) { CHECK(!out[0] && out[1] == NULL); }
        opd_error_clear();
        CHECK_INT(opd_call_list(opd_find(whole), NULL, 0).n, i == 4 ? 1 : 0);
        CHECK(opd_ok() == (i != 0 && i != 3));
        opd_error_clear();
    }
    const opd_value self = opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32));
    CHECK(opd_call_list(opd_find("aten::exp"), &self, 1).data == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "type 'Tensor', but opd_call_list returns a list of tensors: use OPD_CALL");
    opd_library_close(lib);
}

/* It is no tensor argument: its keys do not choose the kernel, and autograd is not asked before the kernel runs. */
static int k_twice_any(opd_call *call) {
    return opd_return_tensor(call, opd_add(opd_arg_value(call, 0).u.t, opd_arg_value(call, 0).u.t));
}
TEST(tensors_where_the_schema_says_any) {
    opd_library *lib = lib_new(OPD_FRAGMENT, "bind", NULL, "t", 1);
    opd_tensor *x = opd_tensor_set_requires_grad(cpu1(), true), *y;
    CHECK_INT(opd_def(lib, "any(Any x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(lib, "any", "CPU", k_first, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(lib, "any", "CompositeExplicitAutograd", k_twice_any, NULL, NULL), 0);
    y = call1(opd_find("bind::any"), x);
    CHECK(y && opd_tensor_requires_grad(y));
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(opd_item_f64(opd_tensor_grad(x)), 2, 0);
    opd_library_close(lib);
}

//-- golden tables -----------------------------------------------------------------------------------------------------

#define KEYS 10
static const char *const keys[KEYS] = {"Undefined", "CPU", "CUDA", "XLA", "AutogradOther", "AutogradCPU", "AutogradCUDA",
                                       "AutogradXLA", "FPGA", "AutogradNestedTensor"};
#define MATH "m math kernel"
#define EXPL "d default backend kernel"
#define AUTO "a autograd kernel"
typedef struct golden {
    const char *regs[6][2];                       /* letter, key ("" is the catch-all) */
    const char *slots[KEYS];                      /* NULL: not looked at */
} golden;
static const golden goldens[] = {
    {{{"m", ""}, {"c", "CPU"}, {"x", "XLA"}, {"a", "Autograd"}, {"A", "AutogradCPU"}, {NULL, NULL}},
     {MATH, "c kernel", MATH, "x kernel", MATH, "A kernel", MATH, AUTO, MATH, MATH}},
    {{{"m", ""}, {"c", "CPU"}, {NULL, NULL}},
     {MATH, "c kernel", MATH, MATH, MATH, "fallback", MATH, MATH, MATH, MATH}},
    {{{"m", ""}, {NULL, NULL}}, {MATH, MATH, MATH, MATH, MATH, MATH, MATH, MATH, MATH, MATH}},
    {{{"m", "CompositeImplicitAutograd"}, {NULL, NULL}}, {MATH, MATH, MATH, MATH, MATH, MATH, MATH, MATH, MATH, MATH}},
    {{{"c", "CPU"}, {"m", "CompositeImplicitAutograd"}, {NULL, NULL}},
     {MATH, "c kernel", MATH, MATH, MATH, "fallback", MATH, MATH, MATH, MATH}},
    {{{"a", "Autograd"}, {NULL, NULL}},
     {"missing", "missing", "missing", "missing", AUTO, AUTO, AUTO, AUTO, "missing", AUTO}},
    {{{"c", "CPU"}, {"a", "Autograd"}, {"m", "CompositeImplicitAutograd"}, {NULL, NULL}},
     {MATH, "c kernel", MATH, MATH, MATH, AUTO, MATH, MATH, MATH, MATH}},
    {{{"m", "CompositeImplicitAutograd"}, {"f", "FPGA"}, {NULL, NULL}},
     {MATH, MATH, MATH, MATH, "ambiguous autogradother", MATH, MATH, MATH, "f kernel", MATH}},
    {{{"c", "CPU"}, {"d", "CompositeExplicitAutograd"}, {NULL, NULL}},
     {EXPL, "c kernel", EXPL, EXPL, "fallback", "fallback", "fallback", "fallback", EXPL, NULL}},
    {{{"c", "CPU"}, {"a", "Autograd"}, {"d", "CompositeExplicitAutograd"}, {NULL, NULL}},
     {EXPL, "c kernel", EXPL, EXPL, AUTO, AUTO, AUTO, AUTO, EXPL, AUTO}},
    {{{"c", "CPU"}, {"a", "Autograd"}, {"m", "CompositeImplicitAutograd"}, {"d", "CompositeExplicitAutograd"}, {NULL, NULL}},
     {EXPL, "c kernel", EXPL, EXPL, AUTO, AUTO, AUTO, AUTO, EXPL, AUTO}},
    /* 2.7: (iii) without an autograd kernel; (iv) a direct kernel beats the alias; the non-functional composite first */
    {{{"m", "CompositeImplicitAutograd"}, {"d", "CompositeExplicitAutograd"}, {NULL, NULL}},
     {EXPL, EXPL, EXPL, EXPL, "fallback", "fallback", "fallback", "fallback", EXPL, NULL}},
    {{{"a", "Autograd"}, {"A", "AutogradCPU"}, {NULL, NULL}},
     {"missing", "missing", "missing", "missing", AUTO, "A kernel", AUTO, AUTO, "missing", AUTO}},
    {{{"a", "Autograd"}, {"m", "CompositeImplicitAutograd"}, {NULL, NULL}},
     {MATH, MATH, MATH, MATH, MATH, MATH, MATH, MATH, MATH, MATH}},
    {{{"n", "CompositeExplicitAutogradNonFunctional"}, {"m", "CompositeImplicitAutograd"}, {NULL, NULL}},
     {"n default backend kernel", "n default backend kernel", "n default backend kernel", MATH, MATH, MATH, MATH, MATH,
      "n default backend kernel", MATH}},
};
#define GOLDENS ((int)(sizeof goldens / sizeof goldens[0]))
static int golden_count(const golden *g) {
    int n = 0;
    while (n < 6 && g->regs[n][0]) { n++; }
    return n;
}
static opd_library *golden_register(const golden *g, int i) {
    opd_library *lib;
    if (i == 0) {
        lib = lib_new(OPD_DEF, "gold", NULL, "D", 1);
        CHECK_INT(opd_def(lib, "op(Tensor x) -> Tensor"), 0);
        return lib;
    }
    lib = lib_new(OPD_IMPL, "gold", *g->regs[i - 1][1] ? g->regs[i - 1][1] : NULL, g->regs[i - 1][0], 1);
    CHECK_INT(opd_impl(lib, "op", k_first), 0);
    return lib;
}

TEST(golden_tables) {
    static char dump[32768];
    char got[128];
    int r, i, n;
    for (r = 0; r < GOLDENS; r++) {
        opd_library *libs[7];
        n = golden_count(&goldens[r]) + 1;
        for (i = 0; i < n; i++) { libs[i] = golden_register(&goldens[r], i); }
        CHECK((size_t)opd_dump_table(opd_find("gold::op"), dump, sizeof dump) < sizeof dump);
        for (i = 0; i < KEYS; i++) {
            if (!goldens[r].slots[i]) { continue; }
            if (strcmp(slot_of(dump, keys[i], got, sizeof got), goldens[r].slots[i]) != 0) { printf("row %d key %s:\n", r, keys[i]); }
            CHECK_STR(got, goldens[r].slots[i]);
        }
        for (i = 0; i < n; i++) { opd_library_close(libs[i]); }
        CHECK_INT(opd_check_invariants(), 0);
    }
    CHECK_OK();
}

//-- Every order of registering and undoing gives, for each subset alive, the same dumps.
#define SUBSETS 64
static char subset_text[SUBSETS][24576];
static int subset_known[SUBSETS];
static void subset_check(opd_op *op, int alive) {
    static char text[24576];
    size_t n = opd_dump(op, text, sizeof text);
    (void)opd_dump_table(op, text + n, sizeof text - n);
    if (!subset_known[alive]) { strcpy(subset_text[alive], text); subset_known[alive] = 1; }
    else { CHECK(strcmp(subset_text[alive], text) == 0); }
    CHECK_INT(opd_check_invariants(), 0);
    if (alive & 1) {                              /* a call publishes the table, which the next check looks at */
        int m = opd_error_mark();
        (void)call1(op, cpu1());
        (void)opd_error_rewind(m);
        CHECK_INT(opd_check_invariants(), 0);
    }
}
static void permutation(int n, int k, int *out) {
    int left[8], i, j;
    for (i = 0; i < n; i++) { left[i] = i; }
    for (i = n; i > 0; i--) {
        int at = k % i;
        k /= i;
        out[n - i] = left[at];
        for (j = at; j + 1 < i; j++) { left[j] = left[j + 1]; }
    }
}
static void permute_row(const golden *g) {
    int n = golden_count(g) + 1, all = 1, i, up, down, a[8], b[8];
    opd_library *libs[8], *first = lib_new(OPD_DEF, "gold", NULL, "D", 1);
    opd_op *op;
    CHECK_INT(opd_def(first, "op(Tensor x) -> Tensor"), 0);
    op = opd_find("gold::op");
    opd_library_close(first);
    memset(subset_known, 0, sizeof subset_known);
    for (i = 2; i <= n; i++) { all *= i; }
    for (up = 0; up < all; up++) {
        int step = n <= 4 ? 1 : n == 5 ? 17 : 241;
        permutation(n, up, a);
        for (down = up % step; down < all; down += step) {
            int alive = 0;
            opd_scope scope = opd_scope_open();
            permutation(n, down, b);
            for (i = 0; i < n; i++) {
                libs[a[i]] = golden_register(g, a[i]);
                alive |= 1 << a[i];
                subset_check(op, alive);
            }
            for (i = 0; i < n; i++) {
                opd_library_close(libs[b[i]]);
                alive &= ~(1 << b[i]);
                subset_check(op, alive);
            }
            opd_scope_close(&scope);
        }
    }
}
TEST(permutations_of_rows) {
    int r;
    for (r = 0; r < GOLDENS; r++) { if (golden_count(&goldens[r]) <= 3) { permute_row(&goldens[r]); } }
    CHECK_OK();
}
TEST(permutations_of_long_rows) {
    int r;
    for (r = 0; r < GOLDENS; r++) { if (golden_count(&goldens[r]) > 3) { permute_row(&goldens[r]); } }
    CHECK_OK();
}

//-- consequences of the order of choice, by calls ---------------------------------------------------------------------

static opd_library *impl_note(const char *ns, const char *name, const char *key, const char *what) {
    opd_library *lib = lib_new(OPD_IMPL, ns, NULL, what, 7);
    CHECK_INT(opd_impl_key(lib, name, key, k_note, (void *)(uintptr_t)what, NULL), 0);
    return lib;
}
static const char *ran_on(opd_op *op, opd_tensor *t) {
    ran[0] = 0;
    (void)call1(op, t);
    CHECK_OK();
    return ran;
}

TEST(backend_kernel_beats_math_and_fallback) {
    opd_library *d = lib_new(OPD_DEF, "beat", NULL, "d", 1), *m, *c, *f;
    opd_op *op;
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    op = opd_find("beat::op");
    m = impl_note("beat", "op", "CompositeImplicitAutograd", "m");
    CHECK_STR(ran_on(op, cpu1()), "m");
    c = impl_note("beat", "op", "CPU", "c");
    CHECK_STR(ran_on(op, cpu1()), "c");
    f = impl_note("beat", "op", "Tracer", "t");
    CHECK_STR(ran_on(op, cpu1()), "c");
    opd_library_close(c);
    CHECK_STR(ran_on(op, cpu1()), "m");
    opd_library_close(m);
    opd_library_close(f);
    CHECK(call1(op, cpu1()) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Could not run 'beat::op' with arguments from the 'CPU' backend");
    opd_library_close(d);
}

TEST(no_tensor_arguments) {
    opd_library *d = lib_new(OPD_DEF, "none", NULL, "d", 1), *c;
    opd_op *op;
    opd_value empty = opd_value_tensors(NULL, 0);
    opd_tensor *one[1];
    CHECK_INT(opd_def(d, "op(Tensor[] x) -> ()"), 0);
    op = opd_find("none::op");
    c = lib_new(OPD_IMPL, "none", "CPU", "c", 2);
    CHECK_INT(opd_impl(c, "op", k_first), 0);
    CHECK(opd_call_all(op, NULL, &empty, 1) == -1);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors)");
    one[0] = NULL;
    empty = opd_value_tensors(one, 1);
    CHECK(opd_call_all(op, NULL, &empty, 1) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "an element is NULL");
    opd_library_close(c);
    opd_library_close(d);
}

/* Every autocast key falls through until it has a kernel.  A call with fake tensors fails if there is no fake
   kernel. */
TEST(autocast_falls_through_everywhere) {
    opd_library *d = lib_new(OPD_DEF, "cast", NULL, "d", 1), *c;
    opd_dispatch_state state = opd_dispatch_state_get(), was;
    opd_key key;
    opd_op *op;
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    op = opd_find("cast::op");
    c = impl_note("cast", "op", "CPU", "c");
    state.excluded &= ~OPD_BIT_OF(OPD_F_AUTOCAST);
    was = opd_dispatch_state_set(state);
    CHECK_STR(ran_on(op, cpu1()), "c");
    (void)opd_dispatch_state_set(was);
    for (key = OPD_KEY_PER_BACKEND(6, OPD_CPU); key <= OPD_KEY_PER_BACKEND(6, OPD_META); key++) {
        char text[8192], line[64];
        (void)opd_dump_table(op, text, sizeof text);
        (void)snprintf(line, sizeof line, "\n%s: fallthrough registered at opdispatch.h", opd_key_name(key));
        CHECK(strstr(text, line) != NULL);
    }
    CHECK(call1(op, opd_tensor_new_on(opd_ints_of(NULL, 0), OPD_FLOAT32, opd_device_make(OPD_META, -1))) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "cast::op: attempted to run this operator with Meta tensors, but there was no "
                "fake impl or Meta kernel registered");
    opd_library_close(c);
    opd_library_close(d);
}

TEST(ambiguous_autograd_other) {
    opd_library *d = lib_new(OPD_DEF, "amb", NULL, "d", 1), *m, *f;
    opd_key_guard g;
    opd_op *op;
    opd_tensor *t = cpu1();
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    op = opd_find("amb::op");
    m = impl_note("amb", "op", "CompositeImplicitAutograd", "m");
    f = impl_note("amb", "op", "FPGA", "f");
    g = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_KEY_AUTOGRAD_OTHER));
    (void)opd_tensor_set_requires_grad(t, true);
    {
        opd_key_guard x = opd_keys_exclude(opd_keyset_add(OPD_KEYS_EMPTY, OPD_KEY_AUTOGRAD_CPU));
        CHECK(call1(op, t) == NULL);
        CHECK_ERROR(OPD_ERROR_NO_KERNEL, "has kernels registered to both CompositeImplicitAutograd and a backend mapped to AutogradOther");
        opd_keys_restore(x);
    }
    opd_keys_restore(g);
    opd_library_close(f);
    opd_library_close(m);
    opd_library_close(d);
}

//-- libraries ---------------------------------------------------------------------------------------------------------

TEST(kinds_and_their_errors) {
    opd_library *d = lib_new(OPD_DEF, "kind", NULL, "first.c", 11), *f, *f2, *i;
    CHECK(opd_library_open(OPD_DEF, "kind", NULL, "second.c", 22) == NULL);
    CHECK(strstr(opd_error_message(), "Only a single OPD_LIBRARY can be used to register the namespace kind") != NULL);
    CHECK(strstr(opd_error_message(), "first.c:11") != NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "second.c:22");
    f = lib_new(OPD_FRAGMENT, "kind", NULL, "f", 1);
    f2 = lib_new(OPD_FRAGMENT, "kind", NULL, "f2", 1);
    opd_library_close(d);
    d = lib_new(OPD_DEF, "kind", NULL, "again.c", 1);
    i = lib_new(OPD_IMPL, "kind", "CPU", "i.c", 5);
    CHECK(opd_def(i, "x() -> ()") == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Cannot define an operator inside of a OPD_LIBRARY_IMPL block");
    CHECK(opd_def(i, "x() -> ()") == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "(Error occurred while processing OPD_LIBRARY_IMPL block at i.c:5)");
    CHECK(opd_fallback(d, k_first) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "opd_fallback: Cannot define an operator inside of a OPD_LIBRARY block");
    CHECK(opd_fallback(f, k_first) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "OPD_LIBRARY_FRAGMENT");
    CHECK(opd_fallback(i, k_first) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Fallback functions which apply to only a single namespace (you specified kind) are not supported");
    CHECK(opd_impl_key(i, "x", "CUDA", k_first, NULL, NULL) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Explicitly provided dispatch key (CUDA) is inconsistent with the dispatch key of the enclosing "
                "OPD_LIBRARY_IMPL block (CPU)");
    CHECK(opd_impl_key(i, "x", "NoSuch", k_first, NULL, NULL) == -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "could not parse dispatch key: NoSuch");
    CHECK(opd_impl(i, "x(Tensor a) -> Tensor", k_first) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "function schema was given");
    CHECK(opd_impl(i, "other::x", k_first) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Explicitly provided namespace (other) in operator name does not match namespace of enclosing "
                "OPD_LIBRARY_IMPL block (kind)");
    CHECK(opd_def(d, "other::x() -> ()") == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Explicitly provided namespace (other) in schema string does not match");
    CHECK_INT(opd_def(d, "kind::same() -> ()"), 0);
    CHECK_INT(opd_impl(i, "kind::same", k_first), 0);
    CHECK(opd_impl(i, NULL, k_first) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "name is NULL");
    CHECK(opd_impl(i, "same", NULL) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "kernel is NULL");
    CHECK(opd_def(d, NULL) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "NULL");
    CHECK(opd_def(NULL, "a() -> ()") == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "NULL");
    CHECK(opd_def(d, "bad(Tensor") == -1);
    CHECK_ERROR(OPD_ERROR_SCHEMA, "again.c:1");
    opd_library_close(i);
    opd_library_close(d);
    opd_library_close(f2);
    opd_library_close(f);
    opd_library_close(NULL);
    CHECK_INT(opd_check_invariants(), 0);
}

TEST(open_errors) {
    char longname[100];
    memset(longname, 'n', 99);
    longname[99] = 0;
    CHECK(opd_library_open(OPD_DEF, "_", NULL, "f", 1) == NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "wildcard namespace");
    CHECK(opd_library_open(OPD_FRAGMENT, "_", NULL, "f", 1) == NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "wildcard namespace");
    CHECK(opd_library_open(OPD_DEF, "a", "CPU", "f", 1) == NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "cannot have a dispatch key");
    CHECK(opd_library_open(OPD_IMPL, "a", "Bogus", "f", 1) == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "could not parse dispatch key: Bogus");
    CHECK(opd_library_open((opd_library_kind)9, "a", NULL, "f", 1) == NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "kind");
    CHECK(opd_library_open(OPD_DEF, "", NULL, "f", 1) == NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "namespace");
    CHECK(opd_library_open(OPD_DEF, NULL, NULL, "f", 1) == NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "namespace");
    CHECK(opd_library_open(OPD_DEF, longname, NULL, "f", 1) == NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "63");
}

TEST(wildcard_impl_names_are_qualified) {
    opd_library *d = lib_new(OPD_DEF, "wild", NULL, "d", 1), *w = lib_new(OPD_IMPL, "_", "CPU", "w", 2);
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    CHECK(opd_impl(w, "op", k_first) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "must be qualified");
    CHECK_INT(opd_impl(w, "wild::op", k_first), 0);
    CHECK(call1(opd_find("wild::op"), cpu1()) != NULL);
    opd_library_close(w);
    opd_library_close(d);
}

TEST(def_twice_names_both_places) {
    opd_library *a = lib_new(OPD_FRAGMENT, "twice", NULL, "one.c", 10), *b = lib_new(OPD_FRAGMENT, "twice", NULL, "two.c", 20);
    char before[4096], after[4096];
    CHECK_INT(opd_def(a, "op(Tensor x) -> Tensor"), 0);
    (void)opd_dump(opd_find("twice::op"), before, sizeof before);
    CHECK(opd_def(b, "op(Tensor x) -> Tensor") == -1);
    CHECK(strstr(opd_error_message(), "Tried to register an operator (twice::op(Tensor x) -> Tensor) with the same name and overload "
                 "name multiple times") != NULL);
    CHECK(strstr(opd_error_message(), "Duplicate registration: registered at two.c:20") != NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Original registration: registered at one.c:10");
    CHECK(opd_def(a, "op(int x) -> int") == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "multiple times");
    (void)opd_dump(opd_find("twice::op"), after, sizeof after);
    CHECK_STR(after, before);
    CHECK_INT(opd_def(b, "op.ov(Tensor x) -> Tensor"), 0);
    CHECK(opd_find("twice::op.ov") != opd_find("twice::op"));
    opd_library_close(a);
    CHECK(opd_find("twice::op") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "did you mean twice::op.ov");
    opd_library_close(b);
    CHECK(opd_find_quiet("twice::op.ov") == NULL);
}

TEST(impl_before_def) {
    opd_library *i = impl_note("dang", "op", "CPU", "i"), *d;
    opd_op *op;
    char dump[4096];
    op = opd_find_quiet("dang::op");
    CHECK(op != NULL && opd_op_schema(op) == NULL);
    CHECK(opd_find("dang::op") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "Could not find schema for dang::op, but we found an implementation; did you forget to");
    (void)opd_dump(op, dump, sizeof dump);
    CHECK(strstr(dump, "schema: (none)") != NULL);
    CHECK(strstr(dump, "CPU: registered at i:7") != NULL);
    CHECK(call1(op, cpu1()) == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "is not defined");
    d = lib_new(OPD_DEF, "dang", NULL, "d", 1);
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    CHECK(opd_find("dang::op") == op);
    CHECK_STR(ran_on(op, cpu1()), "i");
    opd_library_close(d);
    CHECK(call1(op, cpu1()) == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "dang::op");
    opd_library_close(i);
    CHECK(opd_find_quiet("dang::op") == NULL);
}

TEST(newest_kernel_is_active) {
    opd_library *d = lib_new(OPD_DEF, "stack", NULL, "d", 1), *a, *b, *c;
    opd_op *op;
    char dump[4096];
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    op = opd_find("stack::op");
    a = impl_note("stack", "op", "CPU", "a");
    b = impl_note("stack", "op", "CPU", "b");
    c = impl_note("stack", "op", "CPU", "c");
    CHECK_STR(ran_on(op, cpu1()), "c");
    (void)opd_dump(op, dump, sizeof dump);
    CHECK(strstr(dump, "CPU: registered at c:7") != NULL);
    CHECK(strstr(dump, "CPU (inactive): registered at b:7") != NULL);
    CHECK(strstr(dump, "CPU (inactive): registered at a:7") != NULL);
    opd_library_close(b);                         /* an inactive one: nothing changes */
    CHECK_STR(ran_on(op, cpu1()), "c");
    opd_library_close(c);
    CHECK_STR(ran_on(op, cpu1()), "a");
    opd_library_close(a);
    opd_library_close(d);
}

static int destroyed;
static void count_destroy(void *user) { (void)user; destroyed++; }
TEST(user_pointers_are_destroyed_once) {
    opd_library *d = lib_new(OPD_DEF, "usr", NULL, "d", 1), *i;
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    i = lib_new(OPD_IMPL, "usr", NULL, "i", 1);
    destroyed = 0;
    CHECK_INT(opd_impl_key(i, "op", "CPU", k_first, &destroyed, count_destroy), 0);
    CHECK_INT(opd_impl_key(i, "op", "Meta", k_first, &destroyed, count_destroy), 0);
    CHECK_INT(destroyed, 0);
    opd_library_close(i);
    CHECK_INT(destroyed, 2);
    opd_library_close(d);
    CHECK_INT(destroyed, 2);
}

TEST(closing_undoes_everything) {
    char before[32768], after[32768];
    opd_library *d, *f;
    opd_op_desc desc;
    opd_op *exp_op = opd_find("aten::exp"), *last = NULL, *o;
    int count = 0, count2 = 0;
    (void)opd_dump_table(exp_op, before, sizeof before);
    for (o = opd_op_next(NULL); o; o = opd_op_next(o)) { count++; }
    d = lib_new(OPD_DEF, "undo", NULL, "d", 1);
    f = lib_new(OPD_IMPL, "_", "Functionalize", "f", 1);
    memset(&desc, 0, sizeof desc);
    desc.schema = "op(Tensor self) -> Tensor";
    desc.cpu = k_first;
    desc.fake = k_first;
    desc.backward = OPD_NOT_DIFFERENTIABLE;
    desc.inplace = "op_";
    desc.out = "op.out";
    desc.user = &destroyed;
    desc.destroy = count_destroy;
    destroyed = 0;
    CHECK_INT(opd_define(d, &desc), 0);
    CHECK_INT(opd_fallback(f, k_first), 0);
    CHECK(opd_find("undo::op") && opd_find("undo::op_") && opd_find("undo::op.out"));
    for (o = opd_op_next(NULL); o; o = opd_op_next(o)) { last = o; }
    CHECK(last != NULL && strncmp(opd_op_name(last), "undo::op", 8) == 0);
    CHECK(opd_op_card(opd_find("undo::op"))->cpu == k_first);
    opd_library_close(f);
    opd_library_close(d);
    CHECK_INT(destroyed, 1);
    CHECK(!opd_find_quiet("undo::op") && !opd_find_quiet("undo::op_") && !opd_find_quiet("undo::op.out"));
    for (o = opd_op_next(NULL); o; o = opd_op_next(o)) { count2++; }
    CHECK_INT(count2, count);
    (void)opd_dump_table(exp_op, after, sizeof after);
    CHECK_STR(after, before);
    CHECK_INT(opd_check_invariants(), 0);
    CHECK_OK();
}

TEST(failed_define_changes_nothing) {
    opd_library *d = lib_new(OPD_DEF, "faild", NULL, "d", 1);
    opd_op_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.schema = "op(Tensor self) -> Tensor";
    desc.cpu = k_first;
    desc.save = "nosuch";
    CHECK(opd_define(d, &desc) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "`save` names 'nosuch', which is neither");
    CHECK(opd_find_quiet("faild::op") == NULL);
    desc.save = NULL;
    desc.out = "op.out(";
    CHECK(opd_define(d, &desc) == -1);
    CHECK_ERROR(OPD_ERROR_SCHEMA, "d:1");
    CHECK(opd_find_quiet("faild::op") == NULL);
    desc.out = NULL;
    CHECK_INT(opd_define(d, &desc), 0);
    opd_library_close(d);
    CHECK(opd_define(NULL, &desc) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "library");
}

//-- fallbacks and fallthrough -----------------------------------------------------------------------------------------

static int k_fallback(opd_call *call) {
    note("F");
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_GRAD_WRAPPER)));
}

TEST(one_fallback_per_key) {
    opd_library *a = lib_new(OPD_IMPL, "_", "XLA", "one.c", 3), *b = lib_new(OPD_IMPL, "_", "XLA", "two.c", 4), *c;
    CHECK_INT(opd_fallback(a, k_first), 0);
    CHECK(opd_fallback(b, k_first) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Tried to register multiple backend fallbacks for the same dispatch key XLA; previous registration "
                "registered at one.c:3, new registration registered at two.c:4");
    opd_library_close(a);
    CHECK_INT(opd_fallback(b, k_first), 0);
    opd_library_close(b);
    c = lib_new(OPD_IMPL, "_", NULL, "n", 1);
    CHECK(opd_fallback(c, k_first) == -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "dispatch key");
    opd_library_close(c);
}

TEST(alias_fallback_expands_or_changes_nothing) {
    opd_library *x = lib_new(OPD_IMPL, "_", "XLA", "x", 1), *e = lib_new(OPD_IMPL, "_", "CompositeExplicitAutograd", "e", 2), *d;
    static char dump[32768];
    char got[128];
    CHECK_INT(opd_fallback(x, k_first), 0);
    CHECK(opd_fallback(e, k_first) == -1);        /* XLA is among its keys */
    CHECK_ERROR(OPD_ERROR_REGISTER, "same dispatch key XLA");
    d = lib_new(OPD_DEF, "alfb", NULL, "d", 1);
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    (void)opd_dump_table(opd_find("alfb::op"), dump, sizeof dump);
    CHECK_STR(slot_of(dump, "CPU", got, sizeof got), "missing");
    opd_library_close(x);
    CHECK_INT(opd_fallback(e, k_first), 0);
    (void)opd_dump_table(opd_find("alfb::op"), dump, sizeof dump);
    CHECK_STR(slot_of(dump, "CPU", got, sizeof got), "fallback");
    CHECK_STR(slot_of(dump, "SparseCUDA", got, sizeof got), "fallback");
    opd_library_close(e);
    (void)opd_dump_table(opd_find("alfb::op"), dump, sizeof dump);
    CHECK_STR(slot_of(dump, "CPU", got, sizeof got), "missing");
    opd_library_close(d);
}

TEST(mode_fallback_sees_every_operator) {
    opd_library *f = lib_new(OPD_IMPL, "_", opd_key_name(OPD_F_GRAD_WRAPPER), "f", 1);
    opd_key_guard g;
    opd_tensor *t = cpu1();
    CHECK_INT(opd_fallback(f, k_fallback), 0);
    ran[0] = 0;
    CHECK(opd_exp(t) != NULL);
    CHECK_STR(ran, "");
    g = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_GRAD_WRAPPER));
    CHECK_INT(opd_keyset_has(opd_keys_included(), OPD_F_GRAD_WRAPPER), 1);
    CHECK(opd_exp(t) != NULL);
    CHECK(opd_add(t, t) != NULL);
    opd_keys_restore(g);
    CHECK_STR(ran, "FF");
    CHECK(opd_exp(t) != NULL);
    CHECK_STR(ran, "FF");
    opd_library_close(f);
    CHECK_INT(opd_keyset_has(opd_keys_included(), OPD_F_GRAD_WRAPPER), 0);
    CHECK_OK();
}

TEST(fallthrough_per_operator_and_backend) {
    opd_library *d = lib_new(OPD_DEF, "fall", NULL, "d", 1), *c, *m, *x, *a;
    opd_tensor *t = cpu1(), *meta = meta1();
    opd_op *op;
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    op = opd_find("fall::op");
    c = impl_note("fall", "op", "CPU", "c");
    m = impl_note("fall", "op", "Meta", "m");
    a = lib_new(OPD_IMPL, "fall", NULL, "a", 1);
    CHECK_INT(opd_impl_key(a, "op", "AutogradCPU", OPD_FALLTHROUGH, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(a, "op", "AutogradMeta", k_note, (void *)(uintptr_t)"A", NULL), 0);
    (void)opd_tensor_set_requires_grad(t, true);
    CHECK_STR(ran_on(op, t), "c");                /* AutogradCPU falls through */
    CHECK_STR(ran_on(op, meta), "A");             /* AutogradMeta does not */
    CHECK_INT(opd_check_invariants(), 0);
    x = impl_note("fall", "op", "AutogradCPU", "x");
    CHECK_STR(ran_on(op, t), "x");
    opd_library_close(x);
    CHECK_STR(ran_on(op, t), "c");
    opd_library_close(a);
    CHECK_STR(ran_on(op, meta), "m");
    opd_library_close(m);
    opd_library_close(c);
    opd_library_close(d);
}

TEST(direct_kernel_beats_global_fallthrough) {
    opd_library *d = lib_new(OPD_DEF, "dft", NULL, "d", 1), *c = NULL, *t = NULL, *f = lib_new(OPD_IMPL, "_", "FuncTorchVmapMode", "f", 1);
    opd_key_guard g;
    int m = opd_error_mark();
    (void)opd_fallback(f, OPD_FALLTHROUGH);       /* may be there already */
    (void)opd_error_rewind(m);
    CHECK_INT(opd_def(d, "a(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_def(d, "b(Tensor x) -> Tensor"), 0);
    c = impl_note("dft", "a", "CPU", "c");
    t = impl_note("dft", "b", "CPU", "c");
    CHECK_INT(opd_impl_key(t, "b", "FuncTorchVmapMode", k_note, (void *)(uintptr_t)"V", NULL), 0);
    g = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, opd_key_parse("FuncTorchVmapMode")));
    CHECK_STR(ran_on(opd_find("dft::a"), cpu1()), "c");
    CHECK_STR(ran_on(opd_find("dft::b"), cpu1()), "V");
    opd_keys_restore(g);
    opd_library_close(t);
    opd_library_close(c);
    opd_library_close(f);
    opd_library_close(d);
}

TEST(fallthrough_kernel_is_never_run) {
    opd_library *d = lib_new(OPD_DEF, "ftr", NULL, "d", 1), *c;
    CHECK_INT(opd_def(d, "op() -> ()"), 0);
    c = lib_new(OPD_IMPL, "ftr", NULL, "c", 1);
    CHECK_INT(opd_impl_key(c, "op", "CompositeExplicitAutograd", OPD_FALLTHROUGH, NULL, NULL), 0);
    CHECK(opd_call_all(opd_find("ftr::op"), NULL, NULL, 0) == -1);
    CHECK_ERROR(OPD_ERROR_KERNEL, "OPD_FALLTHROUGH was called as a kernel");
    opd_library_close(c);
    opd_library_close(d);
}

//-- guards, redispatch ------------------------------------------------------------------------------------------------

TEST(guards_add_and_take_away_only_their_own) {
    opd_keyset s = opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_4), before_in = opd_keys_included(), before_ex = opd_keys_excluded();
    opd_key_guard a = opd_keys_include(s), b = opd_keys_include(s), c;
    opd_keys_restore(b);                          /* added nothing */
    CHECK(opd_keyset_has(opd_keys_included(), OPD_F_USER_4));
    c = opd_keys_exclude(s);
    CHECK(opd_keyset_has(opd_keys_excluded(), OPD_F_USER_4));
    opd_keys_restore(c);
    opd_keys_restore(a);
    CHECK(opd_keys_included().functionality == before_in.functionality);
    CHECK(opd_keys_excluded().functionality == before_ex.functionality);
}

TEST(exclude_wins_over_include) {
    opd_library *d = lib_new(OPD_DEF, "exwin", NULL, "d", 1), *c, *t;
    opd_key_guard g, x;
    opd_keyset s = opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_TRACER);
    opd_op *op;
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    op = opd_find("exwin::op");
    c = impl_note("exwin", "op", "CPU", "c");
    t = impl_note("exwin", "op", "Tracer", "t");
    CHECK_STR(ran_on(op, cpu1()), "c");
    g = opd_keys_include(s);
    CHECK_STR(ran_on(op, cpu1()), "t");
    x = opd_keys_exclude(s);
    CHECK_STR(ran_on(op, cpu1()), "c");
    opd_keys_restore(x);
    CHECK_STR(ran_on(op, cpu1()), "t");
    opd_keys_restore(g);
    CHECK_STR(ran_on(op, cpu1()), "c");
    opd_library_close(t);
    opd_library_close(c);
    opd_library_close(d);
}

static int k_down_tracer(opd_call *call) {
    note("t");
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_TRACER)));
}
static int k_down_autograd(opd_call *call) {
    note("a");
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AUTOGRAD_OTHER)));
}
static int k_down_view(opd_call *call) {
    note("v");
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AD_INPLACE_OR_VIEW)));
}
static int k_twice(opd_call *call) {
    if (opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_TRACER)))) { return -1; }
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_TRACER)));
}

TEST(redispatch_goes_down) {
    opd_library *d = lib_new(OPD_DEF, "redis", NULL, "d", 1), *i = lib_new(OPD_IMPL, "redis", NULL, "i", 1);
    opd_key_guard g;
    opd_tensor *t = cpu1(), *r;
    opd_op *op;
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    op = opd_find("redis::op");
    CHECK_INT(opd_impl_key(i, "op", "Tracer", k_down_tracer, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(i, "op", "Autograd", k_down_autograd, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(i, "op", "ADInplaceOrView", k_down_view, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(i, "op", "CPU", k_note, (void *)(uintptr_t)"c", NULL), 0);
    g = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_TRACER));
    ran[0] = 0;
    r = call1(op, t);
    CHECK(r == t);
    CHECK_STR(ran, "tavc");
    opd_keys_restore(g);
    CHECK_STR(ran_on(op, t), "avc");
    opd_library_close(i);
    i = lib_new(OPD_IMPL, "redis", NULL, "i", 1);
    CHECK_INT(opd_impl_key(i, "op", "Tracer", k_twice, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(i, "op", "CPU", k_note, (void *)(uintptr_t)"c", NULL), 0);
    g = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_TRACER));
    CHECK(call1(op, t) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "opd_redispatch was called after the kernel had returned a result");
    opd_keys_restore(g);
    opd_library_close(i);
    opd_library_close(d);
}

static char shown[1024];
static void show_line(void *user, int is_error, const char *text) {
    const size_t n = strlen(shown);
    CHECK(user == shown && is_error == -1);
    (void)opd_neg(cpu1());                        /* calls inside of a log function are not shown */
    (void)snprintf(shown + n, sizeof shown - n, "%s\n", text);
}
static int k_down_mode(opd_call *call) {
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_VMAP_MODE)));
}
static int k_outer(opd_call *call) {
    return opd_return_tensor(call, call1(opd_find("shows::op.inner"), opd_arg_tensor(call, 0)));
}
TEST(calls_are_shown) {
    opd_library *d = lib_new(OPD_DEF, "shows", NULL, "d", 1), *i = lib_new(OPD_IMPL, "shows", NULL, "i", 1);
    opd_key_guard g = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_VMAP_MODE));
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_def(d, "op.inner(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(i, "op", "FuncTorchVmapMode", k_down_mode, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(i, "op", "CPU", k_outer, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(i, "op.inner", "CPU", k_note, (void *)(uintptr_t)"c", NULL), 0);
    shown[0] = 0;
    opd_log_set(show_line, shown);
    CHECK(call1(opd_find("shows::op"), cpu1()) != NULL);
    CHECK_STR(shown, "");
    CHECK(!opd_dispatch_trace_set(true));
    CHECK(call1(opd_find("shows::op"), cpu1()) != NULL);
    CHECK(opd_dispatch_trace_set(false));
    CHECK_STR(shown, "[call] op=[shows::op], key=[FuncTorchVmapMode]\n [redispatch] op=[shows::op], key=[CPU]\n"
                     "  [call] op=[shows::op.inner], key=[CPU]\n");
    CHECK(call1(opd_find("shows::op"), cpu1()) != NULL);
    CHECK(strlen(shown) == strlen("[call] op=[shows::op], key=[FuncTorchVmapMode]\n [redispatch] op=[shows::op], key=[CPU]\n"
                                  "  [call] op=[shows::op.inner], key=[CPU]\n"));
    opd_log_set(NULL, NULL);
    opd_keys_restore(g);
    opd_library_close(i);
    opd_library_close(d);
    CHECK_OK();
}

static int k_forgets(opd_call *call) {
    (void)opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_TRACER));
    (void)opd_keys_exclude(opd_keyset_add(OPD_KEYS_EMPTY, OPD_KEY_AUTOGRAD_CPU));
    (void)opd_grad_mode_set(false);
    (void)opd_scope_open();
    (void)opd_scope_open();
    if (opd_arg_int(call, 1)) { return opd_fail(OPD_ERROR_USER, "on purpose"); }
    return opd_return_value(call, opd_arg_value(call, 0));
}
TEST(state_is_put_back_after_a_kernel) {
    opd_library *d = lib_new(OPD_DEF, "forg", NULL, "d", 1), *i = lib_new(OPD_IMPL, "forg", "CPU", "i", 1);
    opd_keyset in = opd_keys_included(), ex = opd_keys_excluded();
    int depth = opd_scope_stats().depth;
    opd_value v[2];
    CHECK_INT(opd_def(d, "op(Tensor x, int fail=0) -> Tensor"), 0);
    CHECK_INT(opd_impl(i, "op", k_forgets), 0);
    v[0] = opd_value_tensor(cpu1());
    v[1] = opd_value_int(0);
    for (; v[1].u.i < 2; v[1].u.i++) {
        CHECK((opd_call_op(opd_find("forg::op"), v, 2) == NULL) == (v[1].u.i == 1));
        CHECK(opd_keys_included().functionality == in.functionality);
        CHECK(opd_keys_excluded().functionality == ex.functionality);
        CHECK(opd_grad_mode_enabled());
        CHECK_INT(opd_scope_stats().depth, depth);
    }
    CHECK_ERROR(OPD_ERROR_USER, "forg::op: on purpose");
    opd_library_close(i);
    opd_library_close(d);
}

//-- arguments ---------------------------------------------------------------------------------------------------------

static char seen[512];
static int k_see(opd_call *call) {                /* writes its arguments down */
    int i, k;
    size_t n = 0;
    seen[0] = 0;
    for (i = 0; i < opd_call_nargs(call); i++) {
        opd_value v = opd_arg_value(call, i);
        n = strlen(seen);
        switch (v.tag) {
        case OPD_TAG_NONE: (void)snprintf(seen + n, sizeof seen - n, "None "); break;
        case OPD_TAG_TENSOR: (void)snprintf(seen + n, sizeof seen - n, "T%s ", opd_tensor_is_wrapped_number(v.u.t) ? "w" : ""); break;
        case OPD_TAG_INT: (void)snprintf(seen + n, sizeof seen - n, "%d ", (int)v.u.i); break;
        case OPD_TAG_FLOAT: (void)snprintf(seen + n, sizeof seen - n, "%.2f ", v.u.d); break;
        case OPD_TAG_BOOL: (void)snprintf(seen + n, sizeof seen - n, "%s ", v.u.i ? "True" : "False"); break;
        case OPD_TAG_STR: (void)snprintf(seen + n, sizeof seen - n, "'%s' ", v.u.s); break;
        case OPD_TAG_COMPLEX: (void)snprintf(seen + n, sizeof seen - n, "%.1f+%.1fj ", v.u.c[0], v.u.c[1]); break;
        case OPD_TAG_DEVICE: (void)snprintf(seen + n, sizeof seen - n, "dev%d ", (int)v.u.device.type); break;
        case OPD_TAG_INTS:
            for (k = 0; k < v.n; k++) { n = strlen(seen); (void)snprintf(seen + n, sizeof seen - n, "%s%d", k ? "," : "[", (int)v.u.ints[k]); }
            (void)snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s] ", v.n ? "" : "[");
            break;
        case OPD_TAG_FLOATS:
            for (k = 0; k < v.n; k++) { n = strlen(seen); (void)snprintf(seen + n, sizeof seen - n, "%s%.1f", k ? "," : "[", v.u.floats[k]); }
            (void)snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s] ", v.n ? "" : "[");
            break;
        default: (void)snprintf(seen + n, sizeof seen - n, "tag%d/%d ", (int)v.tag, (int)v.n);
        }
    }
    return 0;
}
static opd_library *see_lib;
static opd_op *see(const char *schema, const char *name) {
    char whole[400], full[100];
    (void)snprintf(whole, sizeof whole, "%s%s", name, schema);
    (void)snprintf(full, sizeof full, "see::%s", name);
    if (!see_lib) { see_lib = lib_new(OPD_DEF, "see", NULL, "see", 1); }
    CHECK_INT(opd_def(see_lib, whole), 0);
    CHECK_INT(opd_impl_key(see_lib, name, "CompositeExplicitAutograd", k_see, NULL, NULL), 0);
    return opd_find(full);
}
static void see_end(void) { opd_library_close(see_lib); see_lib = NULL; }

TEST(defaults_and_keywords) {
    opd_op *op = see("(Tensor? x, int a, int b=2, *, float c=3.5, bool d=True, str e='hey', int[2] f=7, Device? g=None) -> ()", "kw");
    opd_value v[3], rets[1];
    opd_keyword kw[2];
    v[0] = opd_value_none();
    v[1] = opd_value_int(1);
    v[2] = opd_value_int(9);
    CHECK_INT(opd_call_all(op, rets, v, 2), 0);
    CHECK_STR(seen, "None 1 2 3.50 True 'hey' [7,7] None ");
    CHECK_INT(opd_call_all(op, rets, v, 3), 0);
    CHECK_STR(seen, "None 1 9 3.50 True 'hey' [7,7] None ");
    v[2] = OPD_DEFAULT;
    CHECK_INT(opd_call_all(op, rets, v, 3), 0);
    CHECK_STR(seen, "None 1 2 3.50 True 'hey' [7,7] None ");
    kw[0].name = "d";
    kw[0].value = opd_value_int(0);
    kw[1].name = "a";
    kw[1].value = opd_value_int(5);
    CHECK_INT(opd_call_keywords(op, rets, v, 1, kw, 2), 0);
    CHECK_STR(seen, "None 5 2 3.50 False 'hey' [7,7] None ");
    CHECK(opd_call_keywords(op, rets, v, 2, kw, 2) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Argument 'a' specified both as positional and keyword argument. Declaration: see::kw(");
    kw[1].name = "nosuch";
    CHECK(opd_call_keywords(op, rets, v, 2, kw, 2) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Unknown keyword argument 'nosuch' for operator 'see::kw'");
    CHECK(opd_call_keywords(op, rets, v, 1, kw, 1) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "see::kw() is missing value for argument 'a'. Declaration: see::kw(Tensor? x, int a");
    CHECK(opd_call_all(op, rets, v, 0) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "is missing value for argument 'x'");
    see_end();
}

TEST(too_many_arguments) {
    opd_op *op = see("(int a) -> ()", "many");
    opd_value v[2];
    v[0] = v[1] = opd_value_int(1);
    CHECK(opd_call_all(op, NULL, v, 2) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected at most 1 argument(s) for operator 'see::many', but received 2 argument(s).");
    see_end();
}

TEST(coercions) {
    static const int64_t i3[] = {1, 2, 3};
    static const double c2[] = {1, 2};
    static const double f2[] = {0.5, 1.5};
    opd_op *t = see("(Tensor x) -> ()", "t"), *f = see("(float x) -> ()", "f"), *b = see("(bool x) -> ()", "b");
    opd_op *i = see("(int x) -> ()", "i"), *n = see("(Scalar x) -> ()", "n"), *l = see("(int[] x) -> ()", "l");
    opd_op *fl = see("(float[] x) -> ()", "fl"), *d = see("(Device x) -> ()", "d"), *o = see("(int? x) -> ()", "o");
    opd_op *l2 = see("(int[2] x) -> ()", "l2"), *ty = see("(ScalarType x) -> ()", "ty"), *ts = see("(Tensor[] x) -> ()", "ts");
    opd_tensor *two[2];
    opd_value v;
#define SEE(op, value, text) do { v = value; CHECK_INT(opd_call_all(op, NULL, &v, 1), 0); CHECK_OK(); CHECK_STR(seen, text); } while (0)
#define NOT(op, value, text) do { v = value; CHECK_INT(opd_call_all(op, NULL, &v, 1), -1); CHECK_ERROR(OPD_ERROR_ARGUMENT, text); } while (0)
    NOT(t, opd_value_double(2), "see::t() Expected a value of type 'Tensor' for argument 'x' but instead found type 'float'");
    CHECK_NEAR(opd_item_f64(OPD_CALL(opd_find("aten::mul.Tensor"), cpu1(), 3)), 3, 0);   /* PyTorch's own take it */
    SEE(t, opd_value_tensor(cpu1()), "T ");
    SEE(f, opd_value_int(3), "3.00 ");
    SEE(b, opd_value_int(1), "True ");
    SEE(b, opd_value_bool(false), "False ");
    SEE(i, opd_value_bool(true), "1 ");
    SEE(n, opd_value_int(1), "1 ");
    SEE(n, opd_value_double(1), "1.00 ");
    SEE(n, opd_value_complex(c2), "1.0+2.0j ");
    SEE(l, opd_value_ints(i3, 3), "[1,2,3] ");
    SEE(l, opd_value_tensors(NULL, 0), "[] ");
    SEE(fl, opd_value_ints(i3, 3), "[1.0,2.0,3.0] ");
    SEE(fl, opd_value_doubles(f2, 2), "[0.5,1.5] ");
    SEE(l2, opd_value_int(4), "[4,4] ");
    SEE(d, opd_value_str("meta"), "dev14 ");
    SEE(o, opd_value_none(), "None ");
    SEE(o, opd_value_int(4), "4 ");
    SEE(ty, opd_value_int(OPD_FLOAT64), "7 ");
    two[0] = two[1] = cpu1();
    SEE(ts, opd_value_tensors(two, 2), "tag12/2 ");
    NOT(b, opd_value_int(2), "Expected a value of type 'bool' for argument 'x' but instead found type 'int'");
    NOT(t, opd_value_str("x"), "see::t() Expected a value of type 'Tensor' for argument 'x' but instead found type 'str'.\nPosition: 0\n"
        "Value: \"x\"\nDeclaration: see::t(Tensor x) -> ()");
    NOT(t, opd_value_none(), "found NULL (a function that fails returns NULL");
    NOT(i, opd_value_double(1), "Expected a value of type 'int' for argument 'x' but instead found type 'float'");
    NOT(i, opd_value_none(), "found NULL (OPD_NONE), which only an optional argument may be");
    NOT(f, opd_value_str("1"), "'float'");
    NOT(l, opd_value_doubles(f2, 2), "'List[float]'");
    NOT(l, opd_value_int(4), "Expected a value of type 'int[]' for argument 'x' but instead found type 'int'");
    NOT(n, opd_value_str("1"), "'str'");
    NOT(ts, opd_value_tensor(cpu1()), "'Tensor'");
    v = opd_value_str("nodevice");
    CHECK_INT(opd_call_all(d, NULL, &v, 1), -1);
    CHECK(!opd_ok());
    opd_error_clear();
    v.tag = 99;
    CHECK_INT(opd_call_all(t, NULL, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "found type '?'");
    see_end();
}

TEST(null_for_a_required_tensor) {
    CHECK(opd_add(NULL, cpu1()) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::add.Tensor() Expected a value of type 'Tensor' for argument 'self' but instead found NULL (a function that fails returns NULL");
    CHECK(opd_add(cpu1(), NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'other'");
}

//-- results -----------------------------------------------------------------------------------------------------------

static int k_results(opd_call *call) {
    static const int64_t ints[] = {4, 5};
    static const double c[] = {1, -1};
    opd_tensor *list[2];
    char text[8];
    list[0] = cpu1();
    list[1] = opd_arg_tensor(call, 0);
    strcpy(text, "local");
    if (opd_return_tensors(call, list, 2) || opd_return_value(call, opd_value_str(text))) { return -1; }
    memset(text, 'x', 5);
    if (opd_return_value(call, opd_value_complex(c)) || opd_return_value(call, opd_value_ints(ints, 2))) { return -1; }
    if (opd_return_int(call, 42) || opd_return_double(call, 2.5)) { return -1; }
    return opd_return_tensor(call, cpu1()) || opd_return_bool(call, true);
}
/* A value with the tag of a tensor that contains NULL, in every function that takes values. */
TEST(null_tensors_in_values) {
    opd_op *add = opd_find("aten::add.Tensor"), *clamp = opd_find("aten::clamp.Tensor");
    opd_value args[3], rets[1], bad = opd_value_tensor(cpu1());
    opd_tensor *out;
    opd_keyword kw;
    bad.u.t = NULL;
    args[0] = bad;
    args[1] = args[0];
    args[2] = opd_value_int(1);
    CHECK(opd_call_op(add, args, 3) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::add.Tensor() Expected a value of type 'Tensor' for argument 'self' but instead found NULL (a function that fails returns NULL");
    args[0] = opd_value_tensor(cpu1());
    CHECK_INT(opd_call_all(add, rets, args, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'other'");
    CHECK_INT(opd_call_tensors(add, &out, args, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'other'");
    CHECK_INT(opd_call_value(add, args, 2).tag, OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'other'");
    kw.name = "other";
    kw.value = bad;
    CHECK_INT(opd_call_keywords(add, rets, args, 1, &kw, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'other'");
    kw.name = NULL;
    CHECK_INT(opd_call_keywords(add, rets, args, 1, &kw, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "is missing value for argument 'other'");
    CHECK_INT(opd_call_all(clamp, rets, args, 2), -1);                       /* Tensor? min: None is said by its tag */
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'min'");
    args[0] = opd_value_int(3);                   /* a number has no memory that could be written, or come back */
    args[1] = opd_value_tensor(cpu1());
    CHECK(opd_call_op(opd_find("aten::add_.Tensor"), args, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'self' but instead found type 'int'");
}
TEST(results_of_every_kind) {
    opd_library *d = lib_new(OPD_DEF, "res", NULL, "d", 1);
    opd_value r[8], v;
    opd_tensor *t = cpu1();
    CHECK_INT(opd_def(d, "op(Tensor x) -> (Tensor[], str, complex, int[], int, float, Tensor, bool)"), 0);
    CHECK_INT(opd_impl_key(d, "op", "CPU", k_results, NULL, NULL), 0);
    v = opd_value_tensor(t);
    CHECK_INT(opd_call_all(opd_find("res::op"), r, &v, 1), 0);
    CHECK_OK();
    CHECK(r[0].tag == OPD_TAG_TENSORS && r[0].n == 2 && r[0].u.tensors[1] == t);
    CHECK_NEAR(opd_item_f64(r[0].u.tensors[0]), 1, 0);
    CHECK_STR(r[1].u.s, "local");
    CHECK(r[2].tag == OPD_TAG_COMPLEX && r[2].u.c[1] < 0);
    CHECK(r[3].tag == OPD_TAG_INTS && r[3].n == 2 && r[3].u.ints[1] == 5);
    CHECK_INT(r[4].u.i, 42);
    CHECK_NEAR(r[5].u.d, 2.5, 0);
    CHECK_NEAR(opd_item_f64(r[6].u.t), 1, 0);
    CHECK(r[7].tag == OPD_TAG_BOOL && r[7].u.i == 1);
    opd_library_close(d);
}

static int k_bad(opd_call *call) {
    int64_t how = opd_arg_int(call, 1);
    opd_tensor *t = cpu1(), *two[2];
    two[0] = two[1] = t;
    switch (how) {
    case 0: return 0;
    case 1: return opd_return_tensor(call, t) || opd_return_tensor(call, t) || opd_return_tensor(call, t);
    case 2: return opd_return_int(call, 3);
    case 3: return opd_return_tensors(call, two, 2);
    case 4: return -1;
    case 5: return opd_return_tensor(call, NULL);
    case 6: (void)opd_return_tensor(call, t); return opd_fail(OPD_ERROR_USER, "later");
    case 7: return opd_return_tensor(call, t);
    case 8: (void)opd_result(call, 5, NULL, 0, OPD_FLOAT32); return 0;
    case 9: (void)opd_result(call, 0, NULL, 0, OPD_FLOAT32); (void)opd_result(call, 0, NULL, 0, OPD_FLOAT32); return 0;
    case 10: return opd_return_tensor(call, t) || opd_return_int(call, opd_arg_int(call, 0));
    case 11: return opd_return_tensor(call, t) || opd_return_int(call, opd_arg_int(call, 7));
    case 12: return opd_return_tensor(call, t) || opd_return_value(call, opd_value_str("no"));
    default: return opd_return_tensor(call, t) || opd_return_int(call, 1);
    }
}
TEST(kernels_that_break_the_convention) {
    static const char *const texts[] = {
        "brk::op: its kernel for CPU returned 0 of 2 result(s)", "the kernel returns a Tensor as result 1, which the schema says is a int",
        "the kernel returns a int as result 0, which the schema says is a Tensor", "the kernel returns a Tensor[] as result 0",
        "brk::op: its kernel for CPU failed without setting an error (opd_fail)", "the kernel returns NULL as result 0", "later", "returned 1 of 2",
        "result 5 of 2 does not exist", "was returned already", "reads argument 0 as another type than Tensor",
        "reads argument 7, but the operator has 2 argument(s)", "returns a str as result 1"};
    opd_library *d = lib_new(OPD_DEF, "brk", NULL, "d", 1);
    opd_value v[2], r[2];
    int64_t live;
    int i;
    CHECK_INT(opd_def(d, "op(Tensor x, int how) -> (Tensor, int)"), 0);
    CHECK_INT(opd_impl_key(d, "op", "CPU", k_bad, NULL, NULL), 0);
    v[0] = opd_value_tensor(cpu1());
    v[1] = opd_value_int(99);
    CHECK_INT(opd_call_all(opd_find("brk::op"), r, v, 2), 0);
    live = opd_memory_stats().live;
    for (i = 0; i < (int)(sizeof texts / sizeof texts[0]); i++) {
        v[1] = opd_value_int(i);
        CHECK_INT(opd_call_all(opd_find("brk::op"), r, v, 2), -1);
        CHECK_ERROR(i == 6 ? OPD_ERROR_USER : OPD_ERROR_KERNEL, texts[i]);
        CHECK(r[0].tag == OPD_TAG_NONE && r[1].tag == OPD_TAG_NONE);
    }
    CHECK_INT(opd_memory_stats().live, live);
    opd_library_close(d);
}

static int k_converted(opd_call *call) {
    char first[8], second[8];
    opd_value list[2];
    strcpy(first, "first");
    strcpy(second, "second");
    list[0] = opd_value_str(first);
    list[1] = opd_value_str(second);
    if (opd_return_int(call, 3) || opd_return_int(call, 1) || opd_return_value(call, opd_value_list(list, 2))) { return -1; }
    memset(first, 'x', 5);
    memset(second, 'x', 6);
    return 0;
}
static int k_strings(opd_call *call) { return opd_return_int(call, opd_arg_value(call, 0).n); }
static int k_tensors_as_ints(opd_call *call) { return opd_return_tensors(call, NULL, 0); }
TEST(results_are_converted_and_copied) {
    opd_library *d = lib_new(OPD_DEF, "conv", NULL, "d", 1);
    opd_value r[3], v, list[2];
    CHECK_INT(opd_def(d, "op() -> (float, bool, str[])"), 0);
    CHECK_INT(opd_impl_key(d, "op", NULL, k_converted, NULL, NULL), 0);
    CHECK_INT(opd_call_all(opd_find("conv::op"), r, NULL, 0), 0);
    CHECK(r[0].tag == OPD_TAG_FLOAT && r[1].tag == OPD_TAG_BOOL && r[2].tag == OPD_TAG_LIST);
    if (r[0].tag == OPD_TAG_FLOAT) { CHECK_NEAR(r[0].u.d, 3, 0); }
    if (r[2].tag == OPD_TAG_LIST && r[2].n == 2) { CHECK_STR(r[2].u.list[1].u.s, "second"); }
    CHECK_INT(opd_def(d, "strings(str[] s) -> int"), 0);
    CHECK_INT(opd_impl_key(d, "strings", NULL, k_strings, NULL, NULL), 0);
    list[0] = opd_value_str("a");
    list[1] = opd_value_int(1);
    v = opd_value_list(list, 1);
    CHECK_INT(opd_call_value(opd_find("conv::strings"), &v, 1).u.i, 1);
    v = opd_value_list(list, 2);
    CHECK_INT(opd_call_all(opd_find("conv::strings"), r, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected a value of type 'str[]' for argument 's'");
    CHECK_INT(opd_def(d, "ints() -> int[]"), 0);
    CHECK_INT(opd_impl_key(d, "ints", NULL, k_tensors_as_ints, NULL, NULL), 0);
    CHECK_INT(opd_call_all(opd_find("conv::ints"), r, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_KERNEL, "the kernel returns a Tensor[] as result 0, which the schema says is a int[]");
    opd_library_close(d);
}

/* A kernel whose redispatch failed may still give results of its own. */
static int k_recovers(opd_call *call) {
    int mark = opd_error_mark();
    if (opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AUTOGRAD_OTHER)))) { (void)opd_error_rewind(mark); }
    return opd_return_tensor(call, opd_arg_tensor(call, 0));
}
static int k_gives_and_fails(opd_call *call) {
    (void)opd_return_tensor(call, cpu1());
    return opd_fail(OPD_ERROR_USER, "after its result");
}
TEST(failed_redispatch_leaves_the_call_as_it_was) {
    opd_library *d = lib_new(OPD_DEF, "rec", NULL, "d", 1);
    opd_tensor *t = opd_tensor_set_requires_grad(cpu1(), true);
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(d, "op", "CPU", k_gives_and_fails, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(d, "op", "Autograd", k_recovers, NULL, NULL), 0);
    CHECK(OPD_CALL(opd_find("rec::op"), t) == t);
    CHECK_OK();
    opd_library_close(d);
}

/* Handles of closed libraries, and NULL instead of a name or an operator. */
TEST(closed_libraries_and_null) {
    opd_library *d = lib_new(OPD_DEF, "twice", NULL, "d", 1);
    opd_op_desc desc;
    opd_value v;
    char buf[16];
    memset(&desc, 0, sizeof desc);
    desc.schema = "g() -> ()";
    opd_library_close(d);
    opd_library_close(d);
    CHECK_INT(opd_def(d, "f() -> ()"), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "the library is closed");
    CHECK_INT(opd_impl(d, "f", k_strings), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "the library is closed");
    CHECK_INT(opd_define(d, &desc), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "the library is closed");
    CHECK_INT(opd_fallback(d, k_strings), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "the library is closed");
    CHECK(opd_find(NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no operator named 'NULL'");
    CHECK(opd_find_quiet(NULL) == NULL && !opd_op_schema(NULL) && !opd_op_card(NULL));
    CHECK_STR(opd_op_name(NULL), "");
    CHECK_INT(opd_dump(NULL, buf, sizeof buf), 0);
    CHECK_INT(opd_dump_table(NULL, buf, sizeof buf), 0);
    CHECK_INT(opd_op_check(NULL, "T"), -1);
    opd_error_clear();
    CHECK_INT(opd_op_check(opd_find("aten::exp"), NULL), -1);
    opd_error_clear();
    v = opd_call_value(NULL, NULL, 0);
    CHECK(v.tag == OPD_TAG_NONE);
    opd_error_clear();
    CHECK(opd_schema_parse(NULL) == NULL);
    opd_error_clear();
    CHECK_INT(opd_schema_nargs(NULL) + opd_schema_nreturns(NULL), 0);
}

/* A definition that fails does not own the user pointer: `destroy` is not called. */
static void count_destroyed(void *user) { (void)user; destroyed++; }
TEST(failed_definitions_take_no_user_pointer) {
    opd_library *d = lib_new(OPD_DEF, "own", NULL, "d", 1);
    opd_op_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.user = &desc;
    desc.destroy = count_destroyed;
    desc.cpu = k_recovers;
    desc.schema = "f(Tensor x) -> Tensor";
    desc.out = "f.out(Tensor x";
    destroyed = 0;
    CHECK_INT(opd_define(d, &desc), -1);
    opd_error_clear();
    CHECK_INT(destroyed, 0);
    desc.out = NULL;
    CHECK_INT(opd_define(d, &desc), 0);
    opd_library_close(d);
    CHECK_INT(destroyed, 1);
}

/* Derived forms that cannot be: nothing to write, too few or other out arguments. */
/* The memory that remains of an undone definition, for nodes of autograd, does not grow with each user pointer. */
TEST(a_user_pointer_of_its_own_each_time) {
    static char users[64];
    static int next;
    int i;
    for (i = 0; i < 16; i++) {
        opd_library *lib = opd_library_open(OPD_FRAGMENT, "each", NULL, "t", 1);
        opd_op_desc d;
        memset(&d, 0, sizeof d);
        d.schema = "op(Tensor x) -> Tensor"; d.cpu = k_first; d.user = &users[next++ % 64];
        CHECK_INT(opd_define(lib, &d), 0);
        opd_library_close(lib);
    }
}

TEST(derived_forms_that_cannot_be) {
    static const char *const schemas[] = {"a() -> Tensor", "b(int n, Tensor x) -> Tensor", "c(Tensor x) -> (Tensor, Tensor)", "d(Tensor x) -> (Tensor, Tensor)",
                                          "e(Tensor x) -> Tensor", "f(Tensor x, int n) -> Tensor", "g(Tensor x) -> Tensor"};
    static const char *const inplace[] = {"a_", "b_", "c_", NULL, NULL, NULL, NULL};
    static const char *const out[] = {NULL, NULL, NULL, "d.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", "e.out(Tensor x, *, Tensor(a!)? out=None) -> Tensor(a!)",
                                      "f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", "g.out(Tensor x, *, Tensor(a!)[] out) -> ()"};
    opd_library *d = lib_new(OPD_DEF, "der", NULL, "d", 1);
    int i;
    for (i = 0; i < 7; i++) {
        opd_op_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.cpu = k_recovers;
        desc.schema = schemas[i];
        desc.inplace = inplace[i];
        desc.out = out[i];
        CHECK_INT(opd_define(d, &desc), -1);
        CHECK_ERROR(OPD_ERROR_REGISTER, "cannot be derived");
    }
    opd_library_close(d);
}

TEST(out_arguments_by_name) {
    static const struct { const char *schema, *out, *name, *whole; } rows[] = {
        {"a(Tensor x) -> (Tensor, Tensor)", "a.out(first, second)", "outs::a.out",
         "outs::a.out(Tensor x, *, Tensor(a!) first, Tensor(b!) second) -> (Tensor(a!), Tensor(b!))"},
        {"b(Tensor x, *, int n=1) -> (Tensor values, Tensor indices)", "b.values(values,indices)", "outs::b.values",
         "outs::b.values(Tensor x, *, int n=1, Tensor(a!) values, Tensor(b!) indices) -> "
         "(Tensor(a!) values, Tensor(b!) indices)"},
        {"c(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
         "int m=2) -> Tensor", "c.out", "outs::c.out", "outs::c.out(int n, *, int m=2, Tensor(a!) out) -> Tensor(a!)"},
        {"d(Tensor x, ScalarType? dtype=None) -> Tensor", "d.out(to)", "outs::d.out",
         "outs::d.out(Tensor x, ScalarType? dtype=None, *, Tensor(a!) to) -> Tensor(a!)"},
        {"e() -> Tensor", "e.out", "outs::e.out", "outs::e.out(*, Tensor(a!) out) -> Tensor(a!)"},
        {"f(Tensor x) -> Tensor[]", "f.out", "outs::f.out", "outs::f.out(Tensor x, *, Tensor(a!)[] out) -> ()"}};
    static const char *const wrong[] = {"g.out(x", "g.out()", "g.out(one)", "g.out(one, two, three)",
                                        "g.out(1, 2)", "g.out(one two, three)"};
    opd_library *lib = lib_new(OPD_DEF, "outs", NULL, "d", 1);
    opd_op_desc desc;
    char text[400];
    size_t i;
    memset(&desc, 0, sizeof desc);
    desc.cpu = k_recovers;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        desc.schema = rows[i].schema;
        desc.out = rows[i].out;
        CHECK_INT(opd_define(lib, &desc), 0);
        (void)opd_schema_print(opd_op_schema(opd_find(rows[i].name)), text, sizeof text);
        CHECK_STR(text, rows[i].whole);
    }
    desc.schema = "g(Tensor x) -> (Tensor, Tensor)";
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        desc.out = wrong[i];
        if (opd_define(lib, &desc) == 0) { printf("%s is taken\n", wrong[i]); }
        CHECK(!opd_ok() && opd_find_quiet("outs::g") == NULL);
        opd_error_clear();
    }
    opd_library_close(lib);
    CHECK_OK();
}

static int k_too_much(opd_call *call) {
    opd_tensor *t = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, t) || opd_return_tensor(call, t);
}
static int k_again(opd_call *call) {
    return opd_return_tensor(call, opd_call_op(opd_call_operator(call), opd_call_args(call), opd_call_nargs(call)));
}
TEST(too_much_and_without_end) {
    opd_library *d = lib_new(OPD_DEF, "end", NULL, "d", 1);
    CHECK_INT(opd_def(d, "more(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_def(d, "self(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(d, "more", "CPU", k_too_much, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(d, "self", "CPU", k_again, NULL, NULL), 0);
    CHECK(call1(opd_find("end::more"), cpu1()) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "the kernel returns more than the 1 result(s) of the schema");
    CHECK(call1(opd_find("end::self"), cpu1()) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "the kernel of end::self for CPU calls itself without end (400 nested calls); it must compute the results itself, "
                "or call other operators");
    CHECK(opd_exp(cpu1()) != NULL);
    CHECK_INT(opd_def(d, "above(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(d, "above", "Autograd", k_again, NULL, NULL), 0);
    CHECK(call1(opd_find("end::above"), opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT64), true)) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "the kernel of end::above for AutogradCPU calls itself without end (400 nested calls); to call the kernels "
                "below it, exclude its keys first, with opd_keys_exclude(OPD_KEYS_AUTOGRAD), or call opd_redispatch(call, ");
    CHECK_INT(opd_def(d, "cast(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(d, "cast", "FuncTorchVmapMode", k_again, NULL, NULL), 0);
    {
        opd_key_guard guard = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, opd_key_parse("FuncTorchVmapMode")));
        CHECK(call1(opd_find("end::cast"), cpu1()) == NULL);
        opd_keys_restore(guard);
    }
    CHECK_ERROR(OPD_ERROR_KERNEL, "calls itself without end (400 nested calls); to call the kernels below it, exclude its key first, with opd_keys_exclude");
    opd_library_close(d);
}

TEST(results_wait_where_a_scope_is) {
    opd_library *d = lib_new(OPD_DEF, "own", NULL, "d", 1);
    opd_tensor *t, *r;
    int64_t handles;
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(d, "op", "CPU", k_first, NULL, NULL), 0);
    t = cpu1();
    handles = opd_scope_stats().handles;
    r = call1(opd_find("own::op"), t);
    CHECK(r == t);
    CHECK_INT(opd_scope_stats().handles, handles + 1);
    opd_library_close(d);
}

//-- handles -----------------------------------------------------------------------------------------------------------

TEST(find_and_call_by_name) {
    static opd_op *cached;
    CHECK(opd_find("aten::exp") == opd_find_quiet("aten::exp"));
    CHECK_STR(opd_op_name(opd_find("aten::add.Tensor")), "aten::add.Tensor");
    CHECK(opd_find_quiet("aten::nothing_like_it") == NULL);
    CHECK(opd_ok());
    CHECK(opd_find("aten::expp") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no operator named 'aten::expp'; did you mean aten::exp");
    CHECK(opd_find("") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no operator named ''");
    CHECK(OPD_OP(&cached, "aten::exp") == opd_find("aten::exp"));
    CHECK(OPD_CALL(OPD_OP(&cached, "aten::exp"), cpu1()) != NULL);
    CHECK(opd_call_op(NULL, NULL, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "NULL");
}

TEST(typed_signatures) {
    opd_op *op = see("(Tensor x, int a, float b, bool c, str d, Device e, int[] f, float[] g, Tensor[] h, Scalar i) -> Tensor", "sig");
    opd_op *n = see("() -> ()", "nosig");
    CHECK_INT(opd_op_check(op, "TTidbsDIFLV"), 0);
    CHECK_INT(opd_op_check(n, "v"), 0);
    CHECK_INT(opd_op_check(op, "TTid"), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Tried to access or call an operator with a wrong signature. operator: see::sig. The number of arguments is different. 3 vs 10.");
    CHECK_INT(opd_op_check(op, "TTiibsDIFLV"), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Type mismatch in argument 3: accessed as 'i'.");
    CHECK_INT(opd_op_check(op, "iTidbsDIFLV"), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Type mismatch in return 1");
    CHECK_INT(opd_op_check(op, "vTidbsDIFLV"), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "return 1");
    CHECK_INT(opd_op_check(n, "T"), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "return 1");
    CHECK_INT(opd_op_check(n, ""), -1);
    CHECK(!opd_ok());
    opd_error_clear();
    CHECK_INT(opd_op_check(NULL, "v"), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the operator is NULL");
    see_end();
}

TEST(handles_after_undefine) {
    opd_op *op = see("(int a) -> ()", "gone"), *again;
    opd_value v = opd_value_int(1);
    opd_keyword kw;
    CHECK_INT(opd_call_all(op, NULL, &v, 1), 0);
    see_end();
    CHECK_INT(opd_call_all(op, NULL, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the operator see::gone is not defined any more: its library was closed");
    kw.name = "a";
    kw.value = v;
    CHECK_INT(opd_call_keywords(op, NULL, NULL, 0, &kw, 1), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "not defined");
    CHECK_STR(opd_op_name(op), "see::gone");
    CHECK(opd_op_schema(op) == NULL && opd_op_card(op) == NULL);
    again = see("(int a) -> ()", "gone");
    CHECK(again == op);
    CHECK_INT(opd_call_all(op, NULL, &v, 1), 0);
    see_end();
}

TEST(dumps_are_cut) {
    char whole[32768], part[64];
    size_t n = opd_dump(opd_find("aten::exp"), whole, sizeof whole);
    CHECK(n == strlen(whole) && n > 64);
    CHECK_INT(opd_dump(opd_find("aten::exp"), part, sizeof part), n);
    CHECK(strlen(part) == 63 && strncmp(part, whole, 63) == 0);
    CHECK_INT(opd_dump(opd_find("aten::exp"), NULL, 0), n);
    n = opd_dump_table(opd_find("aten::exp"), whole, sizeof whole);
    CHECK_INT(opd_dump_table(opd_find("aten::exp"), part, sizeof part), n);
    CHECK(strlen(part) == 63 && strncmp(part, whole, 63) == 0);
}

CHECK_MAIN()
