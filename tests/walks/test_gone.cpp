/* Every function of the library that takes a tensor gets one that was freed.  The error says which scope has ended. */
#include "../cases.h"

TEST(scopes_with_a_name) {
    const int64_t before = opd_scope_stats().handles;
    opd_scope scope = opd_scope_open_at("a name");
    CHECK(opd_ones(OPD_INTS(2), OPD_FLOAT32) && opd_scope_stats().handles > before);
    opd_scope_close(&scope);
    CHECK_INT(opd_scope_stats().handles, before);
}

#if !defined(CHECK_SANITIZED)                     /* which find it by themselves */
//-- arguments of the functions ----------------------------------------------------------------------------------------

static opd_tensor *dead, *alive;
static opd_tensor *lists[8], *outputs[2];
static int where;                                 /* the parameter that gets the freed tensor */
static int at;
static opd_tensor *next_tensor() { return at++ == where ? dead : alive; }

/* Whether a function of such a parameter is called here, and what with: what has a call to belong to is tested in one. */
template <class T> struct given {
    static T make() { return T(); }
    enum { tensors = 0, foreign = 0 };
};
template <class R, class... A> struct given<R (*)(A...)> {
    static R nothing(A...) { return R(); }
    static R (*make())(A...) { return nothing; }
    enum { tensors = 0, foreign = 0 };
};
#define GIVEN(type, value) \
    template <> struct given<type> { static type make() { return value; } enum { tensors = 0, foreign = 0 }; };
#define FOREIGN(type) \
    template <> struct given<type> { static type make() { return NULL; } enum { tensors = 0, foreign = 1 }; };
#define TENSORS(type, value) \
    template <> struct given<type> { static type make() { return value; } enum { tensors = 1, foreign = 0 }; };
static opd_tensor *const *next_list() {
    opd_tensor **l = &lists[at % 8];
    *l = next_tensor();
    return l;
}
static opd_value value_of_tensor() { return opd_value_tensor(next_tensor()); }
static const opd_value *next_values() { static opd_value v[1]; v[0] = value_of_tensor(); return v; }
static char text[300];
static int number;
static const int64_t numbers[] = {1, 1, 1, 1};
static const char *const names[] = {"a", "b", "c", NULL};
static opd_graph *a_graph;
static opd_scaler *a_scaler;
static opd_module *a_module;
static opd_value results[64];
static opd_derivative *a_derivative, *another;
static opd_tensor **no_outputs() { return outputs; }
static opd_audit *an_audit;
static opd_audit *next_audit() {                  /* after an error, an audit can only be ended */
    if (an_audit) { (void)opd_audit_end(an_audit); }
    opd_error_clear();
    return an_audit = opd_audit_begin("/dev/null", 0);
}
TENSORS(opd_tensor *, next_tensor())
TENSORS(const opd_tensor *, next_tensor())
TENSORS(opd_tensor *const *, next_list())
TENSORS(opd_tensors, opd_tensors_of(next_list(), 1))
TENSORS(const opd_value *, next_values())
GIVEN(opd_tensor **, no_outputs())
GIVEN(opd_ints, opd_ints_of(numbers, 1))
GIVEN(const int64_t *, numbers)
GIVEN(int, 1)
GIVEN(int *, &number)
GIVEN(opd_derivative **, &another)
GIVEN(unsigned, 0)
GIVEN(char *, text)
GIVEN(size_t, 100)
GIVEN(const char *, "/nowhere/at/all")
GIVEN(const char *const *, names)
GIVEN(opd_scalar_type, OPD_FLOAT32)
GIVEN(opd_backend, OPD_CPU)
GIVEN(opd_op *, opd_find("aten::exp"))
GIVEN(opd_overloads *, opd_overloads_find("aten::exp"))
GIVEN(const opd_graph *, a_graph)
GIVEN(opd_graph *, a_graph)
GIVEN(opd_scaler *, a_scaler)
GIVEN(opd_value *, results)
GIVEN(opd_module *, a_module)
GIVEN(opd_audit *, next_audit())
GIVEN(const opd_module *, a_module)
GIVEN(opd_derivative *, a_derivative)
FOREIGN(opd_call *)
FOREIGN(const opd_call *)
FOREIGN(opd_backward_call *)
FOREIGN(opd_jvp_call *)
FOREIGN(opd_context *)
FOREIGN(const opd_context *)
FOREIGN(opd_optimizer *)
FOREIGN(const opd_optimizer *)
FOREIGN(const opd_program *)
FOREIGN(const opd_script *)
FOREIGN(void *)
FOREIGN(const opd_schema *)                       /* says what a schema says, whatever the tensor is */
FOREIGN(const opd_autograd_function *)

//-- the walk ----------------------------------------------------------------------------------------------------------

template <class... A> struct sums;
template <> struct sums<> { enum { tensors = 0, foreign = 0 }; };
template <class A, class... B> struct sums<A, B...> {
    enum { tensors = (int)given<A>::tensors + (int)sums<B...>::tensors,
           foreign = (int)given<A>::foreign + (int)sums<B...>::foreign };
};
/* What is no reading of a tensor, and what is not called with one that does not work: it says so another way. */
static const char *const others[] = {
    "opd_tensor_wrap_on", "opd_graph_function", "opd_gradgradcheck", "opd_call_at", "opd_call_keywords",
    "opd_overloads_resolve", "opd_overloads_call", "opd_string_text", "opd_tuple_new", "opd_checkpoint_file_save", "opd_gguf_save",
    "opd_module_set", "opd_group_send", "opd_group_recv", "opd_group_reduce", "opd_group_gather", "opd_group_scatter",
    "opd_all_gather", "opd_reduce_scatter", "opd_data_parallel", "opd_sharded_add",
    "opd_sharded_parallel",     /* these want a group first, */
    "opd_compiled_run", "opd_compiled_function", NULL     /* these something compiled */
};

static opd_tensor *make_dead() {
    opd_tensor *t = NULL;
    OPD_SCOPE { t = opd_ones(OPD_INTS(1), OPD_FLOAT32); }
    return t;
}
template <class R, class... A> static void probe(const char *name, R (*f)(A...)) {
    int n;
    if (sums<A...>::tensors == 0 || sums<A...>::foreign != 0) { return; }
    for (n = 0; others[n]; n++) { if (!strcmp(name, others[n])) { return; } }
    for (where = 0; where < (int)sums<A...>::tensors; where++) {
        at = 0;
        dead = make_dead();
        outputs[0] = outputs[1] = NULL;
        OPD_SCOPE {
            alive = opd_ones(OPD_INTS(1), OPD_FLOAT32);
            (void)f(given<A>::make()...);
            outputs[0] = outputs[1] = NULL;
        }
        if (opd_ok() || (!strstr(opd_error_message(), "has been freed: the scope that begins at ") &&
                         !strstr(opd_error_message(), "released"))) {
            printf("%s, tensor %d: %s\n", name, where, opd_ok() ? "no error" : opd_error_message());
            CHECK(!"says that a tensor is gone");
        }
        opd_error_clear();
    }
}
static int identity(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_exp(in[0]);
    return out[0] ? 1 : -1;
}
TEST(every_function_that_takes_a_tensor) {
    opd_tensor *x = opd_ones(OPD_INTS(1), OPD_FLOAT32), *y = NULL;
    a_graph = opd_graph_trace(identity, NULL, &x, 1, NULL);
    a_scaler = opd_scaler_new(NULL);
    a_module = opd_module_new();
    CHECK_INT(opd_module_add(a_module, "a", x, OPD_MODULE_BUFFER), 0);
    CHECK_INT(opd_vjp(identity, NULL, &x, 1, NULL, &y, 1, &a_derivative), 1);
    CHECK_OK();
#define PROBE(R, name, n, types) probe(#name, name);
#define PROBE_V(name, n, types) probe(#name, name);
    OPDI_HOST_FUNCTIONS(PROBE, PROBE_V)
    if (an_audit) { (void)opd_audit_end(an_audit); }
    an_audit = NULL;
    opd_error_clear();
    opd_module_free(a_module);
    opd_scaler_free(a_scaler);
    opd_graph_free(a_graph);
}

//-- values that hold a tensor -----------------------------------------------------------------------------------------

static void says_gone(int line) {
    if (opd_ok() || !strstr(opd_error_message(), "has been freed: the scope that begins at ")) {
        printf("line %d: %s\n", line, opd_ok() ? "no error" : opd_error_message());
        CHECK(!"says that a tensor is gone");
    }
    opd_error_clear();
}
TEST(values_that_hold_a_tensor) {
    const char *name = "a";
    opd_tensor *gone = make_dead();
    opd_value value = opd_value_tensor(gone), list = opd_list_new(OPD_TAG_TENSORS), dict = opd_dict_new();
    (void)opd_tuple_new(&value, 1); says_gone(__LINE__);
    (void)opd_value_keep(value); says_gone(__LINE__);
    (void)opd_value_keep(opd_value_tensors(&gone, 1)); says_gone(__LINE__);
    (void)opd_list_append(list, value); says_gone(__LINE__);
    CHECK_INT(opd_list_count(list), 0);
    (void)opd_dict_set(dict, opd_value_int(1), value); says_gone(__LINE__);
    (void)opd_dict_set(dict, value, opd_value_int(1)); says_gone(__LINE__);
    CHECK_INT(opd_list_count(dict), 0);
    (void)opd_checkpoint_file_save("/nowhere/at/all", &name, &value, 1); says_gone(__LINE__);
    opd_module *module = opd_module_new();
    CHECK_INT(opd_module_add(module, name, opd_ones(OPD_INTS(1), OPD_FLOAT32), OPD_MODULE_BUFFER), 0);
    CHECK_INT(opd_module_set(module, name, gone), -1); says_gone(__LINE__);
    opd_module_free(module);
}

//-- every operator, in every tensor argument --------------------------------------------------------------------------

static void call_with_one_gone(const opd_op *op, op_case *c, opd_tensor **slot) {
    opd_tensor *was = *slot;
    opd_value rets[MOST_RESULTS];
    *slot = make_dead();
    OPD_SCOPE { (void)opd_call_all((opd_op *)(uintptr_t)op, rets, c->args, c->nargs); }
    *slot = was;
    if (opd_ok() || !strstr(opd_error_message(), "has been freed: the scope that begins at ")) {
        printf("%s: %s\n", opd_op_name(op), opd_ok() ? "no error" : opd_error_message());
        CHECK(!"says that a tensor is gone");
    }
    opd_error_clear();
}
TEST(every_operator_in_every_argument) {
    int asked = 0;
    for (const opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *card = opd_op_card(op);
        const char *text_of_cases = card && card->cases ? card->cases : "";
        OPD_SCOPE {
            op_case c;
            memset(&c, 0, sizeof c);
            c.op = op;
            c.dtype = OPD_FLOAT32;
            if (*text_of_cases && case_read_next(&c, &text_of_cases)) {
                for (int i = 0; i < c.nargs; i++) {
                    opd_value *v = &c.args[i];
                    opd_tensor **l = v->tag == OPD_TAG_TENSOR ? &v->u.t : c.lists[i].tensors;
                    for (int k = 0; k < (v->tag == OPD_TAG_TENSORS ? v->n : v->tag == OPD_TAG_TENSOR); k++) {
                        if (l[k]) { call_with_one_gone(op, &c, &l[k]); asked++; }
                    }
                }
            }
        }
    }
    CHECK(asked > 500);
}

//-- functions outside of the walks ------------------------------------------------------------------------------------

#define GONE(part) CHECK_ERROR(OPD_ERROR_ARGUMENT, part)
TEST(calls_by_other_ways) {
    opd_op *exp = opd_find("aten::exp"), *add = opd_find("aten::add.Tensor");
    opd_value ret, v[2];
    v[0] = opd_value_tensor(make_dead());
    v[1] = opd_value_tensor(opd_ones(OPD_INTS(1), OPD_FLOAT32));
    CHECK(opd_call_at(exp, "CPU", &ret, v, 1) != 0); GONE("opd_call_at: the tensor has been freed: the scope that begins at ");
    CHECK(opd_overloads_call(opd_overloads_find("aten::add"), &ret, v, 2, NULL, 0) != 0); GONE("'self' has been freed");
    opd_keyword k = {"other", v[0]};
    CHECK(opd_call_keywords(add, &ret, v + 1, 1, &k, 1) != 0); GONE("'other' has been freed");
    CHECK(!opd_add(v[0].u.t, v[1].u.t)); GONE("'self' has been freed");
}
static int returns_what_is_gone(opd_call *call) { return opd_return_tensor(call, make_dead()); }
static int returns_a_list_of_it(opd_call *call) {
    opd_tensor *t = make_dead();
    return opd_return_tensors(call, &t, 1);
}
static int saves_what_is_gone(opd_context *ctx) {
    opd_tensor *t = make_dead();
    return opd_context_save_for_backward(ctx, &t, 1) || opd_context_return(ctx, t);
}
static int no_backward(opd_backward_call *bw) { (void)bw; return -1; }
TEST(kernels_that_return_what_is_gone) {
    opd_library *lib = opd_library_open(OPD_DEF, "gone", NULL, __FILE__, __LINE__);
    opd_tensor *x = opd_ones(OPD_INTS(1), OPD_FLOAT32);
    opd_autograd_function f = opd_autograd_function();
    opd_value v = opd_value_tensor(x);
    (void)opd_def(lib, "f(Tensor x) -> Tensor");
    (void)opd_def(lib, "g(Tensor x) -> Tensor[]");
    (void)opd_impl_key(lib, "f", "CPU", returns_what_is_gone, NULL, NULL);
    (void)opd_impl_key(lib, "g", "CPU", returns_a_list_of_it, NULL, NULL);
    CHECK(!opd_call_op(opd_find("gone::f"), &v, 1)); GONE("gone::f: ");
    CHECK(opd_call_list(opd_find("gone::g"), &v, 1).n == 0); GONE("gone::g: ");
    f.name = "saves"; f.forward = saves_what_is_gone; f.backward = no_backward;
    x = opd_tensor_set_requires_grad(x, true);
    v = opd_value_tensor(x);
    CHECK(!opd_autograd_call(&f, &v, 1)); GONE("has been freed");
    opd_library_close(lib);
}

/* The place of the scope; released by hand; a kernel's own; whatever the tensor's size. */
static int keeps_what_it_makes(opd_call *call) {
    dead = opd_exp(opd_arg_tensor(call, 0));
    return opd_return_tensor(call, opd_arg_tensor(call, 0));
}
TEST(why_it_is_gone) {
    static const int64_t sizes_to_try[] = {1, 8, 60, 65, 130, 1000, 5000, 20000, 1000000};
    char place[400];
    opd_tensor *t = NULL, *u;
    for (size_t s = 0; s < sizeof sizes_to_try / sizeof *sizes_to_try; s++) {
        OPD_SCOPE {
            int line = __LINE__ + 1;
            OPD_SCOPE { t = opd_ones(OPD_INTS(sizes_to_try[s]), OPD_FLOAT32); }
            snprintf(place, sizeof place, "begins at %s:%d has ended (opd_keep", __FILE__, line);
            for (int i = 0; i < 8; i++) { u = opd_tensor_new(OPD_INTS(sizes_to_try[s]), OPD_FLOAT32); CHECK(u != t); }
            CHECK(opd_numel(t) == 0); GONE(place);
            CHECK(opd_ndim(t) == 0 && opd_dtype(t) == OPD_DTYPE_NONE && !opd_sizes(t) && !opd_data(t)); GONE(place);
        }
    }
    {
        int line = __LINE__ + 1;
        OPD_SCOPED;
        snprintf(place, sizeof place, "begins at %s:%d has ended", __FILE__, line);
        t = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    }
    CHECK(!opd_exp(t)); GONE(place);
    opd_scope by_hand = opd_scope_open_at("the loop over files");
    t = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    opd_scope inner = opd_scope_open();
    u = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    opd_scope_close(&inner);
    opd_scope_close(&by_hand);
    CHECK(!opd_exp(t)); GONE("the scope that begins at the loop over files has ended");
    CHECK(!opd_exp(u)); GONE("the scope that begins at opd_scope_open has ended");
    OPD_SCOPE { t = opd_keep(opd_ones(OPD_INTS(2), OPD_FLOAT32)); }
    CHECK_NEAR(opd_item_f64(opd_sum(t)), 2, 0);
    opd_release(t);
    CHECK(!opd_exp(t)); GONE("'self' has been freed: its last reference was released (opd_release)");
    u = opd_keep(opd_ones(OPD_INTS(2), OPD_FLOAT32));
    OPD_SCOPE { t = opd_keep(opd_ones(OPD_INTS(2), OPD_FLOAT32)); }
    opd_tensor *variable = t;
    (void)opd_assign(&variable, u);
    opd_release(u);
    CHECK(!opd_exp(t)); GONE("'self' has been freed: its last reference was released (opd_release)");
    CHECK(opd_exp(u) != NULL);
    opd_release(u);
}
TEST(what_a_kernel_had_made_is_gone) {
    opd_library *lib = opd_library_open(OPD_DEF, "gone", NULL, __FILE__, __LINE__);
    opd_value v = opd_value_tensor(opd_ones(OPD_INTS(1), OPD_FLOAT32));
    (void)opd_def(lib, "h(Tensor x) -> Tensor");
    (void)opd_impl_key(lib, "h", "CPU", keeps_what_it_makes, NULL, NULL);
    CHECK(opd_call_op(opd_find("gone::h"), &v, 1) == v.u.t);
    CHECK(!opd_exp(dead)); GONE("'self' has been freed: the scope of a kernel of gone::h has ended");
    opd_library_close(lib);
}
TEST(deeper_than_places_are_known) {
    opd_scope scopes[80];
    opd_tensor *t[80];
    for (int i = 0; i < 80; i++) { scopes[i] = opd_scope_open_at("here"); t[i] = opd_ones(OPD_INTS(1), OPD_FLOAT32); }
    for (int i = 80; i-- > 0;) {
        opd_scope_close(&scopes[i]);
        CHECK(!opd_exp(t[i])); GONE(i < 60 ? "begins at here" : "has been freed: the scope");
    }
}
#endif
CHECK_MAIN()
