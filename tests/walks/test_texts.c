/* The texts of errors and warnings say what happened, to what, and what to do.  Each text is tested by a program
   that makes the mistake.  A walk over every operator with every mistake tests that texts repeat no name, leave none
   out, and use the terms of C. */
#include "../cases.h"

//-- the operators -----------------------------------------------------------------------------------------------------

static int k_double(opd_call *call) {
    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, 0)), *y = opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));
    float *from = opd_data_f32(x), *to = opd_data_f32(y);
    int64_t i;
    for (i = 0; opd_ok() && i < opd_numel(x); i++) { to[i] = 2 * from[i]; }
    return opd_return_tensor(call, y);
}
static int k_nothing(opd_call *call) { (void)call; return 0; }
static int k_number(opd_call *call) { return opd_return_int(call, 3); }
static int k_none(opd_call *call) { return opd_return_value(call, opd_value_none()); }
static int k_says_its_name(opd_call *call) { (void)call; return opd_fail(OPD_ERROR_USER, "texts::says: it is Tuesday"); }
static int k_says_more(opd_call *call) { (void)call; return opd_fail(OPD_ERROR_USER, "texts::says_nothing of the kind"); }

static opd_library *lib;
static opd_op *op_of(const char *schema, opd_kernel cpu, opd_kernel fake, opd_kernel vmap) {
    opd_op_desc d;
    char name[80];
    memset(&d, 0, sizeof d);
    d.schema = schema;
    d.cpu = cpu;
    d.fake = fake;
    d.vmap = vmap;
    if (!lib) { lib = opd_library_open(OPD_FRAGMENT, "texts", NULL, "texts.c", 1); }
    (void)snprintf(name, sizeof name, "texts::%.*s", (int)strcspn(schema, "("), schema);
    return opd_define(lib, &d) == 0 ? opd_find(name) : NULL;
}
static void end(void) {
    opd_library_close(lib);
    lib = NULL;
}
#define SAYS(call, text) do { (void)(call); CHECK(!opd_ok()); (void)check_error(opd_error_code(), text, __FILE__, __LINE__); } while (0)
static opd_tensor *three(void) { return opd_ones(OPD_INTS(3), OPD_FLOAT32); }
static opd_tensor *meta(void) { return opd_tensor_new_on(OPD_INTS(3), OPD_FLOAT32, opd_device_make(OPD_META, -1)); }

//-- missing kernels, keys, devices and operators ----------------------------------------------------------------------

static void say_nothing(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
static int call_op(void *op, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = OPD_CALL((opd_op *)op, in[0]);
    return out[0] ? 1 : -1;
}
TEST(a_fake_kernel) {
    static const char what[] = "Register a fake kernel (`fake` of opd_op_desc, or opd_fake_register) that makes results of the right sizes with opd_result";
    opd_op *op = op_of("f(Tensor x) -> Tensor", k_double, NULL, NULL);
    SAYS(OPD_CALL(op, meta()), what);
    OPD_FAKE_MODE { SAYS(OPD_CALL(op, three()), "register a fake kernel (`fake` of opd_op_desc, or opd_fake_register)"); }
#if !defined(OPD_NO_GRAPHS) && !defined(OPD_NO_COMPILER)
    {
        opd_tensor *in = three();
        opd_graph *graph = opd_graph_trace(call_op, op, &in, 1, NULL);
        opd_c_options options;
        memset(&options, 0, sizeof options);
        options.name = "model";
        options.calls = true;
        CHECK_OR_RETURN(graph);
        SAYS(opd_graph_write_c(graph, &in, 1, "/nowhere", &options), what);
        opd_graph_free(graph);
    }
#endif
    end();
}
TEST(a_kernel_that_is_registered_thrice_is_named_once) {
    opd_op *op = op_of("f(Tensor x) -> Tensor", k_double, NULL, NULL);
    int i, count = 0;
    const char *at;
    opd_log_set(say_nothing, NULL);               /* of overriding */
    for (i = 0; i < 3; i++) { CHECK_INT(opd_impl_key(lib, "f", "CPU", k_double, NULL, NULL), 0); }
    CHECK(!OPD_CALL(op, meta()));
    for (at = opd_error_message(); (at = strstr(at, "CPU [registered")) != NULL; at++) { count++; }
    CHECK_INT(count, 1);
    opd_error_clear();
    opd_log_set(NULL, NULL);
    end();
}
TEST(a_key_of_the_program) {
    static const char what[] = "if it is a key of your program, call opd_key_define before the name is used";
    SAYS(opd_key_parse("MyProfiler"), what);
    SAYS(opd_library_open(OPD_IMPL, "_", "MyProfiler", "texts.c", 1), what);
    SAYS(opd_key_parse("AutogradCPUU"), "could not parse dispatch key: AutogradCPUU; did you mean AutogradCPU");
    SAYS(opd_key_parse("Python"), "for a mode, use a user key (opd_key_define)");
}
TEST(a_device_of_the_program) {
    opd_device device;
    SAYS(opd_device_parse("mydev:0", &device), "(opd_backend_register gives a custom device its name)");
    SAYS(opd_tensor_new_on(OPD_INTS(1), OPD_FLOAT32, opd_device_make(OPD_PRIVATEUSE3, -1)),
         "register its memory and copies first (opd_backend_register)");
    SAYS(opd_tensor_new_on(OPD_INTS(1), OPD_FLOAT32, opd_device_make(OPD_CUDA, -1)), "opdispatch_cuda.cu is neither linked nor loaded");
}
TEST(an_operator_that_is_gone) {
    opd_op *op = op_of("gone(Tensor x) -> Tensor", k_double, NULL, NULL);
    end();
    SAYS(OPD_CALL(op, three()), "the operator texts::gone is not defined any more: its library was closed (opd_library_close)");
    SAYS(opd_find("texts::gone"), "the operator texts::gone is not defined any more: its library was closed (opd_library_close)");
    SAYS(opd_find("texts::never"), "no operator named 'texts::never'; nothing is registered in 'texts'");
}

//-- NULL and other values instead of tensors --------------------------------------------------------------------------

TEST(null) {
    static const char why[] = "NULL (a function that fails returns NULL: did a call before this one fail? opd_tensor_grad and opd_arg_tensor also return NULL if there is no tensor)";
    opd_op *op = op_of("f(Tensor x, int n=0) -> Tensor", k_double, NULL, NULL);
    SAYS(opd_add(NULL, three()), "aten::add.Tensor() Expected a value of type 'Tensor' for argument 'self' but instead found NULL (a function that fails returns NULL");
    SAYS(opd_add(three(), opd_tensor_grad(three())), why);
    SAYS(opd_add(NULL, three()), "Value: NULL\n");
    SAYS(OPD_CALL(op, OPD_NONE), why);
    SAYS(opd_cat(OPD_TENSORS(three(), NULL), 0), "for argument 'tensors' but an element is NULL (a function that fails returns NULL");
    SAYS(OPD_CALL(op, three(), OPD_NONE), "argument 'n' but instead found NULL (OPD_NONE), which only an optional argument may be");
    SAYS(opd_data_f32(NULL), "reading the data: the tensor is NULL");
    end();
}
TEST(a_kernel_that_gives_none) {
    SAYS(OPD_CALL(op_of("none(Tensor x) -> int", k_none, NULL, NULL), three()), "texts::none: the kernel returns NULL as result 0, which the schema says is a int");
    SAYS(OPD_CALL(op_of("number(Tensor x) -> Tensor", k_number, NULL, NULL), three()), "texts::number: the kernel returns a int as result 0");
    end();
}
TEST(data_of_another_dtype) {
    opd_op *op = op_of("f(Tensor x) -> Tensor", k_double, NULL, NULL);
    opd_tensor *d = opd_ones(OPD_INTS(2, 5), OPD_FLOAT64), *h = opd_ones(OPD_INTS(1), OPD_FLOAT16);
    SAYS(opd_data_f32(d), "opd_data_f32: the tensor of sizes [2, 5] has dtype float64, not float32: use opd_data_f64, or convert it with opd_to_dtype(t, OPD_FLOAT32)");
    SAYS(opd_data_bool(h), "opd_data_bool: the tensor of sizes [1] has dtype float16, not bool: use opd_data, or convert it with opd_to_dtype(t, OPD_BOOL)");
    SAYS(OPD_CALL(op, d), "texts::f: opd_data_f32: the tensor of sizes [2, 5] has dtype float64, not float32");
    end();
}

//-- names -------------------------------------------------------------------------------------------------------------

TEST(a_name_is_said_once) {
    op_of("nothing(Tensor x) -> Tensor", k_nothing, NULL, NULL);
    (void)OPD_CALL(opd_find("texts::nothing"), three());
    CHECK_STR(opd_error_message(), "texts::nothing: its kernel for CPU returned 0 of 1 result(s)");
    opd_error_clear();
    op_of("says(Tensor x) -> Tensor", k_says_its_name, NULL, NULL);
    (void)OPD_CALL(opd_find("texts::says"), three());
    CHECK_STR(opd_error_message(), "texts::says: it is Tuesday");
    opd_error_clear();
    CHECK_INT(opd_impl_key(lib, "says", "CPU", k_says_more, NULL, NULL), 0);      /* another word that begins so */
    (void)OPD_CALL(opd_find("texts::says"), three());
    CHECK_STR(opd_error_message(), "texts::says: texts::says_nothing of the kind");
    opd_error_clear();
    end();
}

//-- blocks, batching rules, opcheck -----------------------------------------------------------------------------------

static void two_cards(opd_library *l) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "first(tensor x) -> Tensor";
    d.cpu = k_double;
    (void)opd_define(l, &d);
    d.schema = "second(Tensor x) -> Tensor";
    (void)opd_define(l, &d);
}
TEST(a_block_with_a_mistake) {
    opd_block block;
    memset(&block, 0, sizeof block);
    block.run = two_cards;
    block.kind = OPD_DEF;
    block.ns = "mistaken";
    block.file = "mistaken.c";
    block.line = 7;
    opdi_block_link(&block);
    SAYS(opd_find("aten::ones"), "first(tensor x) -> Tensor\n      ~~~~~~ <--- HERE (Error occurred while processing OPD_LIBRARY block at mistaken.c:7) "
         "(the block ran because this was the first use of the dispatcher; the lines of the block after the mistake registered nothing)");
    CHECK(opd_find_quiet("mistaken::second") == NULL);
    opd_library_close(block.library);
}
#if !defined(OPD_NO_TRANSFORMS)
static char warned[600];
static int warnings;
static void listen_to(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    warnings++;
    (void)snprintf(warned, sizeof warned, "%s", text);
}
TEST_KEEPS(an_operator_without_a_batching_rule) {
    opd_op *op = op_of("slow(Tensor x) -> Tensor", k_double, NULL, NULL);
    opd_tensor *x = opd_ones(OPD_INTS(4, 3), OPD_FLOAT32), *out[OPD_TRANSFORM_OUTPUTS];
    int i;
    warnings = 0;
    opd_log_set(listen_to, NULL);
    for (i = 0; i < 2; i++) { CHECK_INT(opd_vmap(call_op, op, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), 1); }
    opd_log_set(NULL, NULL);
    CHECK_INT(warnings, 1);                       /* once for each operator */
    CHECK(strstr(warned, "texts::slow: vmap runs it once for each example. Set `.vmap` of opd_op_desc (to OPD_BATCH_POINTWISE or another "
                 "rule, or to OPD_BATCH_LOOP if the loop is intended), or register a rule with opd_vmap_register."));
    end();
}
#endif
#if !defined(OPD_NO_CHECKING)
static int but_the_last(opd_call *call, int64_t less, float add) {
    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, 0)), *y = opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));
    int64_t i;
    if (!y || !opd_data(y)) { return y ? 0 : -1; }
    for (i = 0; opd_ok() && i + less < opd_numel(x); i++) { opd_data_f32(y)[i] = 2 * opd_data_f32(x)[i] + add; }
    return opd_ok() ? 0 : -1;
}
static int k_but_the_last(opd_call *call) { return but_the_last(call, 1, 0); }
static int k_state(opd_call *call) {
    static float calls;
    return but_the_last(call, 0, calls++);
}
TEST(opcheck_blames_what_is_not_written) {
    static const opd_kernel rules[] = {NULL, OPD_BATCH_LOOP, OPD_BATCH_POINTWISE};
    size_t i;
    opd_log_set(say_nothing, NULL);
    for (i = 0; i < sizeof rules / sizeof *rules; i++) {
        opd_value x = opd_value_tensor(opd_ones(OPD_INTS(4, 3), OPD_FLOAT32));
        opd_op *op = op_of("last(Tensor x) -> Tensor", k_but_the_last, k_but_the_last, rules[i]);
        SAYS(opd_opcheck(op, &x, 1, NULL), "opcheck(texts::last, ...): test_memory failed with Results of the operator (followed by the arguments that it writes) depend on the contents of uninitialised memory");
        op = op_of("state(Tensor x) -> Tensor", k_state, k_state, rules[i]);
        SAYS(opd_opcheck(op, &x, 1, NULL), "opcheck(texts::state, ...): test_memory failed with Results of the operator (followed by the arguments that it writes) are "
             "different when it is called twice with the same arguments");
        end();
    }
    opd_log_set(NULL, NULL);
}
#endif

//-- every operator with every fault -----------------------------------------------------------------------------------

/* Why a text is none for a C program; NULL: it is fine. */
static const char *text_fault(const char *text) {
    static const char *const words[] = {"NoneType", "staticmethod", "kwargs", "Traceback", "TypeError", "RuntimeError",
                                        "ValueError", "AttributeError", "IndexError", "isinstance", "lambda ", "(null)",
                                        "''", "\"\"", "()()", ": :", "  :", "an element is None", "torch.library",
                                        "please report a bug", "INTERNAL ASSERT", "TORCH_", "at::Tensor"};
    static char why[200];
    const char *at, *end;
    size_t i, n;
    if (!*text) { return "it is empty"; }
    if (strchr(" :,.(", *text)) { return "it begins with no name"; }
    for (i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(text, words[i])) { (void)snprintf(why, sizeof why, "it has the word %s", words[i]); return why; }
    }
    for (at = text; (end = strstr(at, ": ")) != NULL; at = end + 2) {       /* "name: name: " or "name: name(" */
        for (n = 0; end - n > text && !strchr(" \n'(", end[-1 - (ptrdiff_t)n]); n++) { }
        if (n > 2 && strncmp(end + 2, end - n, n) == 0 && strchr(": ('", end[2 + n])) {
            (void)snprintf(why, sizeof why, "it says %.*s twice", (int)(n < 100 ? n : 100), end - n);
            return why;
        }
    }
    return NULL;
}
static int texts_seen;
/* One call with a fault; its text, if it is an error. */
static void try_fault(const opd_op *op, const opd_value *args, int n, const char *fault) {
    opd_value rets[OPD_MAX_ARGS];
    (void)opd_call_all((opd_op *)(uintptr_t)op, rets, args, n);
    if (!opd_ok()) {
        char text[1600];
        const char *why;
        (void)snprintf(text, sizeof text, "%s", opd_error_message());
        why = text_fault(text);
        texts_seen++;
        if (why) { printf("%s, %s: %s: %s\n", opd_op_name(op), fault, why, text); }
        CHECK(!why);
    }
    opd_error_clear();
}
enum { FAULT_NULL, FAULT_NONE, FAULT_STRING, FAULT_FLOAT, FAULT_EMPTY, FAULT_LIST_OF_NULL, FAULT_BOOL, FAULT_LONG, FAULT_COMPLEX,
       FAULT_HALF, FAULT_DOUBLE, FAULT_SCALAR, FAULT_SIX_DIMS, FAULT_NO_ELEMENTS, FAULT_OTHER_SIZES, FAULT_META, FAULT_FAR, FAULTS };
static const char *const fault_names[] = {"NULL", "None", "a string", "a float", "an empty list", "a list with NULL", "bool", "int64", "complex128",
    "float16", "float64", "no dims", "six dims", "no elements", "other sizes", "on meta", "a number far away"};
/* The value of an argument with a fault; false: there is none for it. */
static bool faulty(const opd_value *value, int fault, opd_value *out) {
    static opd_tensor *nulls[2];
    static opd_value none;
    static const opd_scalar_type dtypes[] = {OPD_BOOL, OPD_INT64, OPD_COMPLEX128, OPD_FLOAT16, OPD_FLOAT64};
    const bool tensor = value->tag == OPD_TAG_TENSOR && value->u.t != NULL;
    none = opd_value_none();
    *out = none;
    switch (fault) {
    case FAULT_NULL: *out = opd_value_tensor(NULL); out->tag = OPD_TAG_TENSOR; out->u.t = NULL; return true;
    case FAULT_NONE: return true;
    case FAULT_STRING: *out = opd_value_str("wrong"); return true;
    case FAULT_FLOAT: *out = opd_value_double(0.5); return true;
    case FAULT_EMPTY: *out = opd_value_ints(NULL, 0); return true;
    case FAULT_LIST_OF_NULL: *out = opd_value_tensors(nulls, 2); return true;
    case FAULT_FAR: *out = opd_value_int(1 << 20); return value->tag == OPD_TAG_INT;
    case FAULT_SCALAR: *out = opd_value_tensor(opd_ones(opd_ints_of(NULL, 0), OPD_FLOAT32)); return tensor;
    case FAULT_SIX_DIMS: *out = opd_value_tensor(opd_ones(OPD_INTS(1, 2, 1, 3, 1, 2), OPD_FLOAT32)); return tensor;
    case FAULT_NO_ELEMENTS: *out = opd_value_tensor(opd_ones(OPD_INTS(0, 3), OPD_FLOAT32)); return tensor;
    case FAULT_OTHER_SIZES: *out = opd_value_tensor(opd_ones(OPD_INTS(7, 5), OPD_FLOAT32)); return tensor;
    case FAULT_META: if (tensor) { *out = opd_value_tensor(opd_tensor_new_on(opd_ints_of(opd_sizes(value->u.t), opd_ndim(value->u.t)), opd_dtype(value->u.t), opd_device_make(OPD_META, -1))); } return tensor;
    default: break;
    }
    if (!tensor) { return false; }
    *out = opd_value_tensor(opd_to_dtype(value->u.t, dtypes[fault - FAULT_BOOL]));
    return opd_ok();
}
static void walk_case(const op_case *c) {
    opd_value args[OPD_MAX_ARGS];
    char fault[100];
    int i, k, given = c->nargs;
    while (given > 0 && c->args[given - 1].tag == OPD_TAG_DEFAULT) { given--; }
    for (i = 0; i < c->nargs; i++) {
        for (k = 0; k < FAULTS; k++) {
            opd_value wrong;
            OPD_SCOPE {
                memcpy(args, c->args, sizeof args);
                if (faulty(&args[i], k, &wrong)) {
                    args[i] = wrong;
                    (void)snprintf(fault, sizeof fault, "argument %d is %s", i, fault_names[k]);
                    try_fault(c->op, args, c->nargs, fault);
                }
                opd_error_clear();
            }
        }
    }
    memcpy(args, c->args, sizeof args);
    for (i = 0; i < given; i++) { OPD_SCOPE { try_fault(c->op, args, i, "too few arguments"); } }
    if (c->nargs + 1 < OPD_MAX_ARGS) {
        args[c->nargs] = opd_value_int(1);
        OPD_SCOPE { try_fault(c->op, args, c->nargs + 1, "too many arguments"); }
    }
}
static void walk_operator(void *arg) {
    static op_case c;
    const opd_op *op = (const opd_op *)arg;
    const char *text = opd_op_card(op) && opd_op_card(op)->cases ? opd_op_card(op)->cases : "";
    opd_log_set(say_nothing, NULL);
    texts_seen = 0;
    memset(&c, 0, sizeof c);
    c.op = op;
    c.dtype = OPD_FLOAT32;
    OPD_SCOPE {
        const bool there = *text && case_read_next(&c, &text);
        opd_error_clear();
        if (there) { walk_case(&c); }
    }
    OPD_SCOPE { try_fault(op, NULL, 0, "no arguments"); }
    CHECK(texts_seen > 0 || opd_schema_nargs(opd_op_schema(op)) == 0);
    opd_log_set(NULL, NULL);
}
/* Operators without cases (forms in place and with out=, those of other namespaces): as many arguments, of one kind. */
static void walk_others(void *arg) {
    opd_op *op;
    int i, k;
    (void)arg;
    opd_log_set(say_nothing, NULL);
    texts_seen = 0;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const int n = opd_op_schema(op) ? opd_schema_nargs(opd_op_schema(op)) : OPD_MAX_ARGS;
        if (has_cases(op) || n > OPD_MAX_ARGS) { continue; }
        for (k = 0; k < FAULT_FAR; k++) {
            OPD_SCOPE {
                opd_value args[OPD_MAX_ARGS], one = opd_value_tensor(opd_ones(OPD_INTS(2, 3), OPD_FLOAT32)), wrong;
                if (faulty(&one, k, &wrong)) {
                    for (i = 0; i < n; i++) { args[i] = wrong; }
                    try_fault(op, args, n, fault_names[k]);
                }
                opd_error_clear();
            }
        }
        OPD_SCOPE { try_fault(op, NULL, 0, "no arguments"); }
    }
    CHECK(texts_seen > 5000);
    opd_log_set(NULL, NULL);
}
static void add(void) {
    add_builtin_operators(walk_operator, has_cases);
    check_add_with("operators_without_cases", walk_others, NULL);
}
CHECK_MAIN_ADD(add)
