// Calls by base name.  schemas/resolve.tsv has the overloads that PyTorch chooses or, if none fits, its reason for each
// overload (tests/golden/make_resolve.py).  THREADED
#include "../../opdispatch.h"
#include "../check.h"
#include <pthread.h>

static opd_value values[16];
static opd_keyword keywords[8];
static int nvalues, nkeywords;
static opd_tensor *two[2];
static const int64_t ints[] = {1, 2};
static const double floats[] = {1.5}, imaginary[] = {0, 2};

static opd_value value_of(const char *w) {
    two[0] = two[1] = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    return !strcmp(w, "T") ? opd_value_tensor(two[0]) : !strcmp(w, "[TT]") ? opd_value_tensors(two, 2) :
           !strcmp(w, "None") ? opd_value_none() : !strcmp(w, "True") ? opd_value_bool(true) :
           !strcmp(w, "False") ? opd_value_bool(false) : !strcmp(w, "'a'") ? opd_value_str("a") :
           !strcmp(w, "[1,2]") ? opd_value_ints(ints, 2) : !strcmp(w, "[1.5]") ? opd_value_doubles(floats, 1) :
           !strcmp(w, "[]") ? opd_value_list(NULL, 0) : !strcmp(w, "2j") ? opd_value_complex(imaginary) :
           strchr(w, '.') ? opd_value_double(atof(w)) : opd_value_int(atoi(w));
}

static void read_call(char *text) {
    char *w;
    nvalues = nkeywords = 0;
    for (w = strtok(text, " "); w; w = strtok(NULL, " ")) {
        char *eq = strchr(w, '=');
        if (!eq) { values[nvalues++] = value_of(w); continue; }
        *eq = 0;
        keywords[nkeywords].name = w;
        keywords[nkeywords++].value = value_of(eq + 1);
    }
}

static const char *overload_of(const opd_op *op) {
    const char *dot = strrchr(opd_op_name(op), '.');
    return dot ? dot + 1 : "default";
}

static int says(opd_call *call) { return opd_return_value(call, opd_value_str(overload_of(opd_call_operator(call)))); }

// The reasons in an error, in the words of resolve.tsv.
static void reasons(const char *message, char *out, size_t cap) {
    static const struct { const char *before, *word; } kinds[] = {
        {"Expected at most", "count"}, {"positional argument(s) but", "position"},
        {"Unknown keyword argument '", "keyword"},
        {"Argument '", "twice"}, {"is missing value for argument '", "missing"}, {" for argument '", "type"},
    };
    const char *part = strstr(message, "\n\n");
    size_t n = (size_t)snprintf(out, cap, "none");
    for (; part; part = strstr(part + 2, "\n\n")) {
        const char *end = strstr(part + 2, "\n\n"), *at = NULL;
        size_t k;
        for (k = 0; k < 6; k++) {
            at = strstr(part, kinds[k].before);
            if (at && (!end || at < end)) { break; }
        }
        n += (size_t)snprintf(out + n, cap - n, "%s%s", n > 4 ? "; " : " ", k < 6 ? kinds[k].word : "?");
        if (k >= 2 && k < 6) {
            at += strlen(kinds[k].before);
            n += (size_t)snprintf(out + n, cap - n, " %.*s", (int)strcspn(at, "'"), at);
        }
    }
}

static opd_library *define_all(char *overloads, const char *name) {
    opd_library *lib = opd_library_open(OPD_DEF, "rz", NULL, __FILE__, __LINE__);
    char *at = overloads, schema[400];
    int i;
    for (i = 0; at; i++) {
        char *end = strstr(at, "; ");
        if (end) { *end = 0; end += 2; }
        (void)snprintf(schema, sizeof schema, "%s.o%d%s -> str", name, i, at);
        CHECK_INT(opd_def(lib, schema), 0);
        *strchr(schema, '(') = 0;
        CHECK_INT(opd_impl_key(lib, schema, "CompositeExplicitAutograd", says, NULL, NULL), 0);
        at = end;
    }
    return lib;
}

// One line; true when it is as PyTorch has it.
static void check_line(char *overloads, char *call, const char *want) {
    static char got[1000], what[3000], name[2100];
    bool own = !strncmp(overloads, "aten::", 6);
    opd_library *lib = own ? NULL : define_all(overloads, "f");
    opd_overloads *set = opd_overloads_find(own ? overloads : "rz::f");
    opd_value ret;
    (void)snprintf(what, sizeof what, "%s %s", overloads, call);
    CHECK_OR_RETURN(set != NULL);
    read_call(call);
    if (own) {
        opd_op *op = opd_overloads_resolve(set, values, nvalues, keywords, nkeywords);
        (void)snprintf(got, sizeof got, "%s", op ? overload_of(op) : "none");
        (void)snprintf(name, sizeof name, strcmp(want, "default") ? "%s.%s" : "%s", overloads, want);
        if (!op && opd_error_code() == OPD_ERROR_ARGUMENT) { opd_error_clear(); }
        if (strcmp(want, "none") != 0 && !opd_find_quiet(name)) { return; }           /* an overload that is not here */
    } else if (opd_overloads_call(set, &ret, values, nvalues, keywords, nkeywords) == 0) {
        (void)snprintf(got, sizeof got, "%s", ret.u.s);
    } else {
        CHECK_INT(opd_error_code(), OPD_ERROR_ARGUMENT);
        reasons(opd_error_message(), got, sizeof got);
        opd_error_clear();
    }
    if (strcmp(got, want) != 0) { printf("%s\n", what); CHECK_STR(got, want); } else { CHECK(true); }
    opd_library_close(lib);
}

TEST(overloads_resolve) {
    static char line[2000];
    FILE *f = check_golden("schemas/resolve.tsv");
    int n = 0;
    CHECK_OR_RETURN(f != NULL);
    for (; fgets(line, sizeof line, f); n++) {
        char *call, *want;
        line[strcspn(line, "\n")] = 0;
        call = strchr(line, '\t');
        want = call ? strchr(call + 1, '\t') : NULL;
        CHECK_OR_RETURN(want != NULL);
        *call++ = *want++ = 0;
        OPD_SCOPE { check_line(line, call, want); }
    }
    fclose(f);
    CHECK_INT(n, 526);
}

// The error names the call and has every overload's own reason; a mistaken name has the nearest.
TEST(overloads_errors) {
    opd_overloads *add = opd_overloads_find("aten::tril");
    const opd_value args[] = {opd_value_tensor(opd_ones(OPD_INTS(2, 2), OPD_FLOAT32)), opd_value_str("a")};
    opd_value ret;
    CHECK_INT(opd_overloads_call(add, &ret, args, 2, NULL, 0), -1);
    CHECK(strstr(opd_error_message(),
                 "aten::tril() has no overload that takes these arguments:\n\n") == opd_error_message());
    CHECK(strstr(opd_error_message(),
                 "Expected a value of type 'int' for argument 'diagonal' but instead found type 'str'.\n"
                                      "Position: 1\nValue: \"a\"\nDeclaration: aten::tril(Tensor self, int ") != NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "\n\naten::tril.out() Expected a value of type 'int' for argument 'diagonal'");
    CHECK(opd_overloads_find("aten::trill") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no operator named 'aten::trill'; did you mean aten::tril");
    CHECK(opd_overloads_find(NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no operator named");
    CHECK(opd_overloads_find("") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no operator named");
    CHECK_INT(opd_overloads_call(NULL, &ret, args, 2, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the overloads of a call are NULL");
    CHECK(opd_overloads_at(NULL, 0) == NULL && opd_overloads_at(add, -1) == NULL && opd_overloads_at(add, 9) == NULL);
}

// A call computes; a wrapped number and a repeated one are made and gone again.
/* If the arguments of a call fit another overload, the error names this overload. */
TEST(another_overload_takes_them) {
    opd_op *sum = opd_find("aten::sum");
    opd_tensor *x = opd_ones(OPD_INTS(2, 3), OPD_FLOAT32);
    opd_value r, args[2];
    CHECK(!OPD_CALL(sum, x, OPD_INTS(1)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "\naten::sum.dim_IntList takes these arguments");
    CHECK(!OPD_CALL(sum, x, -1));
    CHECK_ERROR(OPD_ERROR_DTYPE, "argument 'dtype': -1 is not a dtype\naten::sum.dim_IntList takes these arguments");
    CHECK(!OPD_CALL(sum, x, 12));
    CHECK_ERROR(OPD_ERROR_DTYPE, "aten::sum.dim_IntList takes these arguments");
    CHECK(!OPD_CALL(opd_find("aten::max.dim"), x, x));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "\naten::max.other takes these arguments");
    CHECK(!OPD_CALL(sum, x, "text"));
    CHECK(!strstr(opd_error_message(), "takes these"));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected a value of type 'ScalarType?' for argument 'dtype'");
    CHECK(opd_dtype(OPD_CALL(sum, x, OPD_FLOAT64)) == OPD_FLOAT64);
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_int(1);
    CHECK_INT(opd_overloads_call(opd_overloads_find("aten::sum"), &r, args, 2, NULL, 0), 0);
    CHECK(opd_ndim(r.u.t) == 1 && opd_dtype(r.u.t) == OPD_FLOAT32);
}
TEST(overloads_call) {
    opd_overloads *add = opd_overloads_find("aten::add"), *pool = opd_overloads_find("aten::flip");
    opd_tensor *x = opd_tensor_from(((const float[]){1, 2}), OPD_INTS(2), OPD_FLOAT32);
    const opd_value args[] = {opd_value_tensor(x), opd_value_int(3)};
    const opd_value flip[] = {opd_value_tensor(x), opd_value_ints(ints, 1)};
    const opd_keyword alpha = {"alpha", opd_value_int(10)};
    opd_value ret;
    CHECK_INT(opd_overloads_call(add, &ret, args, 2, &alpha, 1), 0);
    CHECK_NEAR(opd_data_f32(ret.u.t)[1], 32, 0);
    CHECK_STR(opd_op_name(opd_overloads_resolve(add, args, 2, &alpha, 1)), "aten::add.Tensor");
    CHECK_STR(opd_op_name(opd_overloads_at(add, 0)), "aten::add.Tensor");
    CHECK_INT(opd_overloads_call(pool, &ret, flip, 2, NULL, 0), -1);          /* the kernel's own error */
    CHECK_ERROR(OPD_ERROR_INDEX, "aten::flip");
}

// A handle follows definitions and their end.
// A None in a list of tensors: the overload that takes one.
TEST(overloads_none_in_a_list) {
    opd_library *lib = opd_library_open(OPD_FRAGMENT, "rz", NULL, "t", 1);
    opd_tensor *list[2];
    opd_value v, r;
    list[0] = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    list[1] = NULL;
    v = opd_value_tensors(list, 2);
    CHECK_INT(opd_def(lib, "some.all(Tensor[] x) -> str") || opd_def(lib, "some.few(Tensor?[] x) -> str"), 0);
    CHECK_INT(opd_impl(lib, "some.all", says) || opd_impl(lib, "some.few", says), 0);
    CHECK_INT(opd_overloads_call(opd_overloads_find("rz::some"), &r, &v, 1, NULL, 0), 0);
    CHECK_STR(r.u.s, "few");
    v.n = 1;
    CHECK_INT(opd_overloads_call(opd_overloads_find("rz::some"), &r, &v, 1, NULL, 0), 0);
    CHECK_STR(r.u.s, "all");
    v.n = 2;
    CHECK_INT(opd_call_all(opd_find("rz::some.all"), &r, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected a value of type 'Tensor[]' for argument 'x' but an element is NULL");
    opd_library_close(lib);
}

TEST(overloads_follow) {
    opd_library *lib = opd_library_open(OPD_FRAGMENT, "rz", NULL, __FILE__, __LINE__), *more;
    const opd_value one = opd_value_int(1);
    opd_overloads *set;
    opd_value ret;
    CHECK_INT(opd_def(lib, "g.f(float x) -> str"), 0);
    CHECK_INT(opd_impl_key(lib, "g.f", "CompositeExplicitAutograd", says, NULL, NULL), 0);
    set = opd_overloads_find("rz::g");
    CHECK_STR(opd_op_name(opd_overloads_resolve(set, &one, 1, NULL, 0)), "rz::g.f");
    more = opd_library_open(OPD_FRAGMENT, "rz", NULL, __FILE__, __LINE__);
    CHECK_INT(opd_def(more, "g.i(int x, int y=2) -> str"), 0);
    CHECK_STR(opd_op_name(opd_overloads_resolve(set, &one, 1, NULL, 0)), "rz::g.f");      /* defined first */
    CHECK_STR(opd_op_name(opd_overloads_at(set, 1)), "rz::g.i");
    opd_library_close(lib);
    CHECK_STR(opd_op_name(opd_overloads_resolve(set, &one, 1, NULL, 0)), "rz::g.i");
    CHECK_INT(opd_overloads_call(set, &ret, &one, 1, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "rz::g.i");
    opd_library_close(more);
    CHECK(opd_overloads_resolve(set, &one, 1, NULL, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "rz::g() has no overload");
    CHECK(opd_overloads_find("rz::g") == NULL);
    opd_error_clear();
}

// Whichever allocation fails, there is an error and nothing is left behind.
TEST(overloads_out_of_memory) {
    const opd_value args[] = {opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)), opd_value_int(3)};
    int64_t n;
    for (n = 1; n < 200; n++) {
        OPD_SCOPE {
            opd_overloads *set;
            opd_value ret;
            int rc = -1;
            opd_memory_fail_at(n, false);
            set = opd_overloads_find("aten::fmod");
            if (set) { rc = opd_overloads_call(set, &ret, args, 2, NULL, 0); }
            opd_memory_fail_at(0, false);
            if (rc == 0) { n = 1000; } else { CHECK_INT(opd_error_code(), OPD_ERROR_MEMORY); }
            opd_error_clear();
        }
    }
    CHECK(n > 1000);
}

static int stop;
static void *caller(void *arg) {
    opd_overloads *set = (opd_overloads *)arg;
    int64_t calls = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE) || calls < 100) {
        OPD_SCOPE {
            const opd_value one = opd_value_int(1);
            opd_value ret;
            calls += opd_overloads_call(set, &ret, &one, 1, NULL, 0) == 0 && !strcmp(ret.u.s, "f");
        }
        opd_error_clear();
    }
    return NULL;
}

TEST(overloads_threads) {
    opd_library *lib = opd_library_open(OPD_FRAGMENT, "rz", NULL, __FILE__, __LINE__), *more;
    pthread_t threads[3];
    int i;
    CHECK_INT(opd_def(lib, "h.f(float x) -> str"), 0);
    CHECK_INT(opd_impl_key(lib, "h.f", "CompositeExplicitAutograd", says, NULL, NULL), 0);
    stop = 0;
    for (i = 0; i < 3; i++) { CHECK_INT(pthread_create(&threads[i], NULL, caller, opd_overloads_find("rz::h")), 0); }
    for (i = 0; i < 100; i++) {
        more = opd_library_open(OPD_FRAGMENT, "rz", NULL, __FILE__, __LINE__);
        CHECK_INT(opd_def(more, "h.more(str x) -> str"), 0);
        CHECK(opd_overloads_at(opd_overloads_find("rz::h"), 1) != NULL);
        opd_library_close(more);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (i = 0; i < 3; i++) { (void)pthread_join(threads[i], NULL); }
    opd_library_close(lib);
}

// Where several overloads of ATen take the same arguments: PyTorch's (2.15) choice.
TEST(aten_overloads_that_take_the_same) {
    static const struct { const char *name, *args, *choice; } calls[] = {
        {"aten::normal", "T 1.0 out=T", "Tensor_float_out"}, {"aten::normal", "T out=T", "Tensor_float_out"},
        {"aten::normal", "T", "Tensor_float"}, {"aten::range", "1 2", "step"}, {"aten::range", "1 2 out=T", "out"},
        {"aten::var", "T [1,2] out=T", "correction_out"}, {"aten::std", "T [1,2] out=T", "correction_out"},
        {"aten::any", "T out=T", "dims_out"}, {"aten::all", "T out=T", "dims_out"}, {"aten::any", "T 1 out=T", "out"},
    };
    size_t i;
    for (i = 0; i < sizeof calls / sizeof *calls; i++) {
        char text[64];
        const opd_op *op;
        (void)snprintf(text, sizeof text, "%s", calls[i].args);
        read_call(text);
        op = opd_overloads_resolve(opd_overloads_find(calls[i].name), values, nvalues, keywords, nkeywords);
        CHECK_STR(op ? overload_of(op) : opd_error_message(), calls[i].choice);
    }
}

/* opd_x takes the arguments without a default, and opd_x_full all.  opd_x_ and opd_x_full_ write to self. */
TEST(typed_functions) {
    opd_tensor *x = opd_full(OPD_INTS(2, 3), OPD_V(2.0), OPD_FLOAT64), *y = opd_ones_like(x);
    CHECK(opd_add_(x, y) == x && opd_mul_Scalar_(x, OPD_V(-2)) == x);
    CHECK_NEAR(opd_data_f64(x)[5], -6, 0);
    CHECK(opd_add_full_(x, y, OPD_V(8)) == x && opd_relu_(opd_neg_(y)) == y);
    CHECK_NEAR(opd_data_f64(x)[0], 2, 0);
    CHECK_NEAR(opd_data_f64(y)[0], 0, 0);
    CHECK(opd_normal_(y, 3, 0) == y && opd_normal_(x, 0, 1) == x);
    CHECK_NEAR(opd_data_f64(y)[0], 3, 0);
    CHECK_INT(opd_dtype(opd_zeros(OPD_INTS(2), OPD_DTYPE_NONE)), OPD_FLOAT32);
    CHECK_INT(opd_dtype(opd_arange(OPD_V(3), OPD_DTYPE_NONE)), OPD_INT64);
    CHECK_NEAR(opd_item_f64(opd_sum_dim(y, opd_ints_of(NULL, 0), false)), 18, 0);
    CHECK_INT(opd_ndim(opd_sum_dim(y, OPD_INTS(1), false)), 1);
    CHECK_INT(opd_ndim(opd_sum_dim(y, OPD_INTS(1), true)), 2);
    CHECK_INT(opd_size(opd_slice(y, 1, OPD_V(1), OPD_NONE, 1), 1), 2);
    CHECK_OK();
    CHECK(!opd_add_(y, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::add_.Tensor");
}

CHECK_MAIN()
