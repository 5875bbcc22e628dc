/* Graphs: the text of traced random programs equals PyTorch's; runs, passes, the parser, files, bad input, memory. */
#include "../../opdispatch.h"
#include "../check.h"
#include <unistd.h>

//-- programs of graphs.txt --------------------------------------------------------------------------------------------

typedef struct program { char lines[40][400]; int n; char text[40000]; } program;

static opd_tensor *input(const char *sizes, int k) {
    char *end;
    int64_t s[2], i;
    opd_tensor *t;
    s[0] = strtoll(sizes, &end, 10);
    s[1] = strtoll(end + 1, NULL, 10);
    t = opd_tensor_new(opd_ints_of(s, 2), OPD_FLOAT32);
    for (i = 0; t && i < opd_numel(t); i++) {
        opd_data_f32(t)[i] = (float)(0.2 + fmod((double)(i + 1) * 0.618 + k * 0.27, 1.0));
    }
    return t;
}

/* Reads one argument; the memory to which it points is in room. */
static opd_value argument(const char *at, opd_tensor **values, int64_t *ints, opd_tensor **list) {
    char *end;
    int n = 0;
    if (*at == 't') { return opd_value_tensor(values[atoi(at + 1)]); }
    if (*at == '_') { return opd_value_none(); }
    if (*at == 'T' || *at == 'F') { return opd_value_bool(*at == 'T'); }
    if (*at == '(') {
        for (at++; *at && *at != ')'; at = *end == ',' ? end + 1 : end) { ints[n++] = strtoll(at, &end, 10); }
        return opd_value_ints(ints, n);
    }
    if (*at == '{') {
        for (at++; *at && *at != '}'; at = *end == ',' ? end + 1 : end) { list[n++] = values[strtol(at + 1, &end, 10)]; }
        return opd_value_tensors(list, n);
    }
    if (strpbrk(at, ".e")) { return opd_value_double(strtod(at, NULL)); }
    return opd_value_int(strtoll(at, NULL, 10));
}

static int run_program(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const program *p = (const program *)user;
    opd_tensor *values[200];
    int count = n, k;
    memcpy(values, in, (size_t)n * sizeof *in);
    for (k = 1; k < p->n; k++) {
        char line[400], name[100], *word, *save = line;
        opd_value args[8], rets[4];
        int64_t ints[8][8];
        opd_tensor *lists[8][8];
        int nargs = 0, i;
        int32_t j;
        opd_op *op;
        (void)snprintf(line, sizeof line, "%s", p->lines[k] + 2);
        if (p->lines[k][0] != 'C') {
            for (i = 0, word = strtok(line, " "); word; word = strtok(NULL, " ")) { out[i++] = values[atoi(word + 1)]; }
            return i;
        }
        word = strtok(save, " ");
        (void)snprintf(name, sizeof name, "aten::%s", word ? word : "");
        if (!(op = opd_find(name))) { return -1; }
        while ((word = strtok(NULL, " ")) != NULL) {
            args[nargs] = argument(word, values, ints[nargs], lists[nargs]);
            nargs++;
        }
        if (opd_call_all(op, rets, args, nargs)) { return -1; }
        for (i = 0; i < opd_schema_nreturns(opd_op_schema(op)); i++) {
            for (j = 0; j < (rets[i].tag == OPD_TAG_TENSORS ? rets[i].n : 1); j++) {
                values[count++] = rets[i].tag == OPD_TAG_TENSORS ? rets[i].u.tensors[j] : rets[i].u.t;
            }
        }
    }
    return -1;
}

/* Reads the next program.  Returns false at the end. */
static bool read_program(FILE *f, program *p, char *next, size_t cap) {
    p->n = 0;
    p->text[0] = 0;
    while (*next || fgets(next, (int)cap, f)) {
        if (*next == 'I' && p->n) { return true; }
        next[strcspn(next, "\n")] = 0;
        if (*next == '|') { strcat(strcat(p->text, next + 2), "\n"); }
        else { (void)snprintf(p->lines[p->n++], sizeof p->lines[0], "%s", next); }
        *next = 0;
    }
    return p->n > 0;
}
static FILE *golden(void) {
    FILE *f = fopen("tests/golden/graphs.txt", "r");
    return f ? f : fopen("golden/graphs.txt", "r");
}
static int inputs_of(const program *p, opd_tensor **in) {
    char line[400], *word;
    int n = 0;
    (void)snprintf(line, sizeof line, "%s", p->lines[0] + 2);
    for (word = strtok(line, " "); word; word = strtok(NULL, " ")) { in[n] = input(word, n); n++; }
    return n;
}
static bool same(const opd_tensor *a, const opd_tensor *b) {
    int64_t i;
    opd_tensor *x = opd_to_dtype(opd_contiguous((opd_tensor *)(uintptr_t)a), OPD_FLOAT64);
    opd_tensor *y = opd_to_dtype(opd_contiguous((opd_tensor *)(uintptr_t)b), OPD_FLOAT64);
    bool right = x && y && opd_ndim(x) == opd_ndim(y) && opd_numel(x) == opd_numel(y) && opd_dtype(a) == opd_dtype(b);
    for (i = 0; right && i < opd_numel(x); i++) {
        const double d = opd_data_f64(x)[i], e = opd_data_f64(y)[i];
        right = d == e || (isnan(d) && isnan(e));
    }
    return right;
}

static program one;                               /* too large for a stack */
static char next_line[4000], text[40000], text2[40000];

TEST(programs_trace_as_pytorch_does) {
    FILE *f = golden();
    static const char *const names[] = {"a0", "a1", "a2"};
    int count = 0;
    CHECK(f != NULL);
    next_line[0] = 0;
    while (f && read_program(f, &one, next_line, sizeof next_line)) {
        OPD_SCOPE {
            opd_tensor *in[4], *fresh[4], *out[8], *want[8];
            opd_trace_options o;
            opd_graph *g, *h;
            int n = inputs_of(&one, in), k, i;
            memset(&o, 0, sizeof o);
            o.names = names;
            o.nnames = n;
            o.list_output = one.lines[one.n - 1][0] == 'L';
            (void)inputs_of(&one, fresh);
            g = opd_graph_trace(run_program, &one, fresh, n, &o);
            CHECK_OK();
            (void)opd_graph_print(g, text, sizeof text);
            CHECK_STR(text, one.text);
            /* the graph gives the results of the program, before and after the passes */
            (void)inputs_of(&one, fresh);
            k = run_program(&one, fresh, n, want);
            (void)inputs_of(&one, fresh);
            CHECK_INT(opd_graph_run(g, fresh, n, out, 8), k);
            for (i = 0; i < k; i++) { CHECK(same(out[i], want[i])); }
            h = opd_graph_parse(text);
            CHECK_OK();
            (void)opd_graph_print(h, text2, sizeof text2);
            CHECK_STR(text2, text);
            CHECK(opd_graph_cse(g) >= 0 && opd_graph_fold(g) >= 0 && opd_graph_dce(g) >= 0);
            (void)inputs_of(&one, fresh);
            CHECK_INT(opd_graph_run(g, fresh, n, out, 8), k);
            for (i = 0; i < k; i++) { CHECK(same(out[i], want[i])); }
            (void)inputs_of(&one, fresh);
            CHECK_INT(opd_graph_run(h, fresh, n, out, 8), k);
            for (i = 0; i < k; i++) { CHECK(same(out[i], want[i])); }
            opd_graph_free(g);
            opd_graph_free(h);
            count++;
        }
    }
    if (f) { fclose(f); }
    CHECK_INT(count, 150);
}

//-- functions -----------------------------------------------------------------------------------------------------------

static int affine(void *user, opd_tensor *const *in, int n, opd_tensor **out) {      /* tanh(x w) + 1 */
    (void)n;
    out[0] = opd_add_Scalar(opd_tanh(opd_mm(in[0], (opd_tensor *)user)), opd_value_int(1));
    return 1;
}
static opd_tensor *numbers(opd_ints sizes) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT32);
    int64_t i;
    for (i = 0; t && i < opd_numel(t); i++) { opd_data_f32(t)[i] = (float)(i * 37 % 11 - 5) / 7; }
    return t;
}
static int64_t two_three[] = {2, 3}, three_two[] = {3, 2}, three[] = {3}, four_three[] = {4, 3};

TEST(constants_inputs_and_other_sizes) {
    opd_tensor *w = numbers(opd_ints_of(three_two, 2)), *x = numbers(opd_ints_of(two_three, 2)), *out, *want;
    opd_tensor *other = numbers(opd_ints_of(four_three, 2));
    opd_graph *g = opd_graph_trace(affine, w, &x, 1, NULL);
    CHECK_INT(opd_graph_ninputs(g), 1);
    CHECK_INT(opd_graph_noutputs(g), 1);
    CHECK_INT(opd_graph_count(g, "aten::mm"), 1);
    CHECK_INT(opd_graph_count(g, "aten::mul"), 0);
    CHECK_INT(opd_graph_run(g, &other, 1, &out, 1), 1);
    (void)affine(w, &other, 1, &want);
    CHECK(same(out, want));
    opd_graph_free(g);
    opd_graph_free(NULL);
    CHECK_INT(opd_graph_ninputs(NULL), 0);
}
TEST(gradients_pass_through_a_run) {
    opd_tensor *w = numbers(opd_ints_of(three_two, 2)), *x = numbers(opd_ints_of(two_three, 2)), *y, *g1, *g2;
    opd_graph *g = opd_graph_trace(affine, w, &x, 1, NULL);
    (void)opd_tensor_set_requires_grad(x, true);
    CHECK_INT(opd_graph_function(g, &x, 1, &y), 1);
    y = opd_sum(y);
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, NULL, &g1), 0);
    (void)affine(w, &x, 1, &y);
    y = opd_sum(y);
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, NULL, &g2), 0);
    CHECK(same(g1, g2));
    opd_graph_free(g);
}
TEST(graphs_run_inside_vmap_and_vmap_is_traced) {
    int64_t many[] = {5, 2, 3};
    opd_tensor *w = numbers(opd_ints_of(three_two, 2)), *x = numbers(opd_ints_of(two_three, 2)), *xs = numbers(opd_ints_of(many, 3));
    opd_tensor *a, *b;
    opd_graph *g = opd_graph_trace(affine, w, &x, 1, NULL);
    CHECK_INT(opd_vmap(opd_graph_function, g, &xs, 1, NULL, &a, 1), 1);
    CHECK_INT(opd_vmap(affine, w, &xs, 1, NULL, &b, 1), 1);
    CHECK(same(a, b));
    opd_graph_free(g);
}
static int affine_sum(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (affine(user, in, n, out) < 0) { return -1; }
    out[0] = opd_sum(out[0]);
    return 1;
}
static int affine_gradient(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(affine_sum, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
TEST(derivatives_are_traced) {
    opd_tensor *w = numbers(opd_ints_of(three_two, 2)), *x = numbers(opd_ints_of(two_three, 2)), *a, *b;
    opd_graph *g = opd_graph_trace(affine_gradient, w, &x, 1, NULL);
    CHECK_OK();
    CHECK_INT(opd_graph_count(g, "aten::tanh"), 1);
    x = opd_mul_Scalar(x, opd_value_int(3));
    CHECK_INT(opd_graph_run(g, &x, 1, &a, 1), 1);
    CHECK_INT(affine_gradient(w, &x, 1, &b), 1);
    CHECK(same(a, b));
    opd_graph_free(g);
}
static int reads(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *e = opd_exp(in[0]);
    (void)n;
    if (*(int *)user == 0) { return opd_data_f32(e) ? 1 : -1; }
    if (*(int *)user == 1) { return opd_item_f64(opd_sum(e)) > 0 && opd_ok() ? 1 : -1; }
    if (*(int *)user == 2) { return 0; }
    if (*(int *)user == 3) { out[0] = numbers(opd_ints_of(three, 1)); return 1; }
    if (*(int *)user == 4) { return opd_graph_trace(reads, user, in, 1, NULL) ? 1 : -1; }
    if (*(int *)user == 5) { return opd_fail(OPD_ERROR_USER, "of my own"); }
    out[0] = opd_mul(e, opd_tensor_set_requires_grad(numbers(opd_ints_of(two_three, 2)), true));
    return 1;
}
TEST(what_cannot_be_traced_is_said) {
    static const char *const says[] = {"a result of aten::exp, was read outside of a kernel",
        "a result of aten::sum, was read outside of a kernel", "didn't return any values!",
        "did not have observable data dependence with trace inputs", "Tracing can't be nested", "of my own",
        "Cannot insert a Tensor that requires grad as a constant"};
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *none = NULL;
    int i;
    for (i = 0; i < 7; i++) {
        CHECK(opd_graph_trace(reads, &i, &x, 1, NULL) == NULL);
        if (!strstr(opd_error_message(), says[i])) { printf("%d: %s\n", i, opd_error_message()); }
        CHECK(strstr(opd_error_message(), says[i]) != NULL);
        opd_error_clear();
        CHECK(opd_exp(x) != NULL && !opd_keyset_has(opd_keys_included(), opd_key_parse("Tracer")));
    }
    CHECK(opd_graph_trace(NULL, NULL, &x, 1, NULL) == NULL);
    opd_error_clear();
    CHECK(opd_graph_trace(affine, NULL, &none, 1, NULL) == NULL);
    opd_error_clear();
}
/* A wrapper whose key comes before the recording hides its tensor from the graph. */
TEST(wrappers_are_no_inputs) {
    opd_tensor *x = numbers(opd_ints_of(three, 1)), *wrapper;
    static opd_key key = OPD_KEY_INVALID;         /* names of keys are permanent */
    if (key == OPD_KEY_INVALID) { key = opd_key_define(OPD_F_USER_5 + 1, "TracedLate"); }
    wrapper = opd_tensor_wrap_key(x, key);
    CHECK(opd_graph_trace(affine, NULL, &wrapper, 1, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "input 0 is a wrapper with the key TracedLate, which comes before the recording");
}

static int calls;
static int another(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = calls++ ? opd_exp(in[0]) : opd_tanh(in[0]);
    return 1;
}
TEST(check_finds_traces_that_differ) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2));
    opd_trace_options o;
    opd_graph *g;
    memset(&o, 0, sizeof o);
    o.check = true;
    calls = 0;
    CHECK(opd_graph_trace(another, NULL, &x, 1, &o) == NULL);
    CHECK(strstr(opd_error_message(), "Graphs differed across invocations!") != NULL);
    CHECK(strstr(opd_error_message(), "aten::tanh(%0)") && strstr(opd_error_message(), "aten::exp(%0)"));
    opd_error_clear();
    g = opd_graph_trace(affine, numbers(opd_ints_of(three_two, 2)), &x, 1, &o);
    CHECK(g != NULL);
    opd_graph_free(g);
}

//-- passes --------------------------------------------------------------------------------------------------------------

static int twice(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *c = opd_ones(opd_ints_of(three, 1), OPD_FLOAT32);
    (void)user; (void)n;
    out[0] = opd_add(opd_exp(in[0]), opd_exp(in[0]));
    out[1] = opd_add(opd_mul(in[0], opd_add(c, c)), opd_tanh(opd_add(c, c)));
    return 2;
}
TEST(passes_take_away_what_is_not_needed) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *out[2], *want[2];
    opd_graph *g = opd_graph_trace(twice, NULL, &x, 1, NULL);
    CHECK_INT(opd_graph_count(g, "aten::exp"), 2);
    CHECK(opd_graph_cse(g) > 0);
    CHECK_INT(opd_graph_count(g, "aten::exp"), 1);
    CHECK_INT(opd_graph_count(g, "aten::tanh"), 1);
    CHECK(opd_graph_fold(g) > 0);
    CHECK_INT(opd_graph_count(g, "aten::tanh"), 0);
    CHECK_INT(opd_graph_count(g, "aten::ones"), 0);
    CHECK_INT(opd_graph_run(g, &x, 1, out, 2), 2);
    (void)twice(NULL, &x, 1, want);
    CHECK(same(out[0], want[0]) && same(out[1], want[1]));
    opd_graph_free(g);
}
/* A text whose types do not tell the dtypes of its constants, as scripts print them. */
TEST(constants_of_unknown_dtype) {
    static const char *const texts[] = {"{2}", "{2.5}", "{1e+07}", "{123456}", "{1234567}", "{-1012762419733073663}",
                                        " 1  2 [ CPULongType{2} ]", " 1  2 [ CPUFloatType{2} ]", " 0  1 [ CPUBoolType{2} ]"};
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT32, OPD_FLOAT32, OPD_FLOAT32, OPD_INT64, OPD_INT64,
                                             OPD_INT64, OPD_FLOAT32, OPD_BOOL};
    char text[200], again[200];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        OPD_SCOPED;
        opd_tensor *out = NULL;
        (void)snprintf(text, sizeof text, "graph():\n  %%x : Tensor = prim::Constant[value=%s]()\n  return (%%x)\n", texts[i]);
        opd_graph *g = opd_graph_parse(text);
        CHECK_OR_RETURN(g != NULL);
        (void)opd_graph_print(g, again, sizeof again);
        CHECK(strstr(again, texts[i]) != NULL);
        CHECK_INT(opd_graph_run(g, NULL, 0, &out, 1), 1);
        CHECK_INT(opd_dtype(out), dtypes[i]);
        opd_graph_free(g);
    }
}
TEST(folds_operators_of_constant_lists) {
    opd_graph *g = opd_graph_parse("graph():\n"
                                   "  %sizes : int[] = prim::Constant[value=[2, 3]]()\n"
                                   "  %none : NoneType = prim::Constant()\n"
                                   "  %ones : Tensor = aten::ones(%sizes, %none, %none, %none, %none)\n"
                                   "  return (%ones)\n");
    opd_tensor *out[1];
    CHECK(opd_graph_fold(g) > 0);
    CHECK_INT(opd_graph_count(g, "aten::ones"), 0);
    CHECK_INT(opd_graph_run(g, NULL, 0, out, 1), 1);
    CHECK_INT(opd_size(out[0], 1), 3);
    opd_graph_free(g);
}

static const char *path(void) {
    static char buf[300];
    const char *dir = getenv("TMPDIR");
    (void)snprintf(buf, sizeof buf, "%s/opdispatch_test_graph_%ld", dir && *dir ? dir : "/tmp", (long)getpid());
    return buf;
}
//-- building graphs with functions --------------------------------------------------------------------------------------

/* tanh(x w) + 1, with split and cat around it: every kind of node. */
static int every_kind(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *parts[3];
    opd_tensors list = opd_split(in[0], 1, -1);
    int i;
    (void)user; (void)n;
    for (i = 0; i < 3; i++) { parts[i] = list.data[i]; }
    out[0] = opd_cat(opd_tensors_of(parts, 2), 1);
    out[1] = opd_add_Scalar(opd_tanh(opd_mm(in[0], in[1])), opd_value_double(0.5));
    return 2;
}
static opd_graph *every_kind_by_hand(void) {
    opd_graph *g = opd_graph_new();
    opd_graph_value *x, *w, *v[3], *parts[3], *list, *out[2];
    char number[8];
    int i;
    x = opd_graph_input(g, "x", "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)");
    w = opd_graph_input(g, NULL, "Float(3, 2, strides=[2, 1], requires_grad=0, device=cpu)");
    v[0] = x;
    v[1] = opd_graph_constant(g, opd_value_int(1));
    v[2] = opd_graph_constant(g, opd_value_int(-1));
    opd_graph_call(g, "aten::split", v, 3, &list, 1);
    opd_graph_unpack(g, list, parts, 3);
    v[0] = opd_graph_list(g, "Tensor", parts, 2);
    v[1] = opd_graph_constant(g, opd_value_int(1));
    opd_graph_call_op(g, opd_find("aten::cat"), v, 2, out, 1);
    v[0] = x;
    v[1] = w;
    opd_graph_call(g, "aten::mm", v, 2, &v[0], 1);
    opd_graph_call(g, "aten::tanh", v, 1, &v[0], 1);
    v[1] = opd_graph_constant(g, opd_value_double(0.5));
    opd_graph_call(g, "aten::add.Scalar", v, 2, &out[1], 1);
    opd_graph_describe(g, out[1], "y", NULL);
    for (i = 5; i <= 7; i++) {                    /* the types that a trace sees; without them: Tensor */
        (void)snprintf(number, sizeof number, "%d", i);
        opd_graph_describe(g, opd_graph_find(g, number), NULL, "Float(2, 1, strides=[3, 1], requires_grad=0, device=cpu)");
    }
    for (i = 10; i <= 13; i++) {
        (void)snprintf(number, sizeof number, "%d", i);
        opd_graph_describe(g, i == 13 ? out[1] : opd_graph_find(g, number), NULL,
                           "Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)");
    }
    opd_graph_output(g, out, 2, false);
    return g;
}
TEST(by_hand_by_text_and_by_trace_are_the_same) {
    opd_tensor *in[2], *a[2], *b[2], *c[2];
    opd_graph *hand = every_kind_by_hand(), *parsed, *traced, *loaded;
    static const char *const names[] = {"x"};
    opd_trace_options o;
    CHECK_OK();
    memset(&o, 0, sizeof o);
    o.names = names;
    o.nnames = 1;
    in[0] = numbers(opd_ints_of(two_three, 2));
    in[1] = numbers(opd_ints_of(three_two, 2));
    (void)opd_graph_print(hand, text, sizeof text);
    parsed = opd_graph_parse(text);
    (void)opd_graph_print(parsed, text2, sizeof text2);
    CHECK_STR(text2, text);
    traced = opd_graph_trace(every_kind, NULL, in, 2, &o);
    CHECK_OK();
    CHECK_INT(opd_graph_describe(traced, opd_graph_find(traced, "15"), "y", NULL), 0);
    (void)opd_graph_print(traced, text2, sizeof text2);
    CHECK_STR(text2, text);
    CHECK_INT(opd_graph_save(hand, path()), 0);
    loaded = opd_graph_load(path());
    (void)opd_graph_print(loaded, text2, sizeof text2);
    CHECK_STR(text2, text);
    CHECK_INT(opd_graph_run(hand, in, 2, a, 2), 2);
    CHECK_INT(opd_graph_run(traced, in, 2, b, 2), 2);
    CHECK_INT(opd_graph_run(loaded, in, 2, c, 2), 2);
    CHECK(same(a[0], b[0]) && same(a[1], b[1]) && same(a[0], c[0]) && same(a[1], c[1]));
    opd_graph_free(hand);
    opd_graph_free(parsed);
    opd_graph_free(traced);
    opd_graph_free(loaded);
    (void)remove(path());
}
TEST(wrong_steps_say_so_and_change_nothing) {
    opd_graph *g = opd_graph_new(), *other = opd_graph_new();
    opd_graph_value *x = opd_graph_input(g, "x", NULL), *one = opd_graph_constant(g, opd_value_int(1)), *v[4], *out[3];
    opd_graph_value *foreign = opd_graph_input(other, "x", NULL), *ints, *list, *y, *gone;
    opd_tensor *leaf = opd_tensor_set_requires_grad(numbers(opd_ints_of(three, 1)), true);
    size_t k;
    v[0] = x;
    v[1] = v[2] = v[3] = one;
    ints = opd_graph_list(g, "int", v + 1, 2);
    CHECK_INT(opd_graph_call(g, "aten::split", v, 2, &list, 1), 1);
    CHECK_INT(opd_graph_call(g, "aten::exp", v, 1, &y, 1), 1);
    CHECK_INT(opd_graph_call(g, "aten::neg", v, 1, &gone, 1), 1);
    CHECK_INT(opd_graph_erase(g, gone), 0);
    CHECK_OK();
    (void)opd_graph_print(g, text, sizeof text);
#define WRONG(call, says)                                                                                      \
    do {                                                                                                       \
        CHECK(!(call));                                                                                        \
        if (!strstr(opd_error_message(), says)) { printf("%s\n", opd_error_message()); }                       \
        CHECK(strstr(opd_error_message(), says) != NULL);                                                      \
        opd_error_clear();                                                                                     \
        (void)opd_graph_print(g, text2, sizeof text2);                                                         \
        CHECK_STR(text2, text);                                                                                \
    } while (0)
    v[1] = list;
    WRONG(opd_graph_call(g, "aten::mm", v, 2, out, 1) >= 0, "opd_graph_call: no overload of aten::mm takes these values: "
          "aten::mm() Expected a value of type 'Tensor' for argument 'mat2' but instead found type 'Tensor[]'.");
    WRONG(opd_graph_call(g, "aten::mm.out", v, 1, out, 1) >= 0, "aten::mm.out() is missing value for argument 'mat2'.");
    WRONG(opd_graph_call_op(g, opd_find("aten::mm"), v, 4, out, 1) >= 0, "aten::mm() Expected a value of type 'Tensor' for argument 'mat2'");
    v[1] = one;
    WRONG(opd_graph_call_op(g, opd_find("aten::exp"), v, 4, out, 1) >= 0,
          "aten::exp() Expected at most 1 argument(s) but received 4 argument(s).");
    WRONG(opd_graph_call(g, "gone::op", v, 1, out, 1) >= 0, "there is no operator gone::op");
    WRONG(opd_graph_call(g, NULL, v, 1, out, 1) >= 0, "the name of the operator is NULL");
    WRONG(opd_graph_call_op(g, NULL, v, 1, out, 1) >= 0, "the operator is NULL");
    WRONG(opd_graph_call(g, "aten::exp", NULL, 1, out, 1) >= 0, "the pointer to the values is NULL");
    WRONG(opd_graph_call(g, "aten::exp", v, -1, out, 1) >= 0, "the pointer to the values is NULL");
    WRONG(opd_graph_call(g, "aten::exp", v, 1, NULL, 1) >= 0, "the pointer to the results is NULL");
    v[1] = NULL;
    WRONG(opd_graph_call(g, "aten::mm", v, 2, out, 1) >= 0, "aten::mm() is missing value for argument 'mat2'.");
    v[1] = foreign;
    WRONG(opd_graph_call(g, "aten::mm", v, 2, out, 1) >= 0, "value 1 is not a value of this graph");
    v[1] = gone;
    WRONG(opd_graph_call(g, "aten::mm", v, 2, out, 1) >= 0, "value 1 is not a value of this graph");
    WRONG(opd_graph_list(g, "Tensor", v + 2, 2), "element 0 of the list does not have the type of the list");
    WRONG(opd_graph_list(g, "int", v, 1), "element 0 of the list does not have the type of the list");
    WRONG(opd_graph_list(g, "thing", v, 1), "there are no lists of 'thing'");
    WRONG(opd_graph_list(g, NULL, v, 1), "there are no lists of ''");
    WRONG(opd_graph_list(g, "Tensor", v, -1), "the pointer to the values is NULL");
    WRONG(opd_graph_unpack(g, x, out, 2) == 0, "prim::ListUnpack must have one input, a list of tensors");
    WRONG(opd_graph_unpack(g, ints, out, 2) == 0, "prim::ListUnpack must have one input, a list of tensors");
    WRONG(opd_graph_unpack(g, list, NULL, 2) == 0, "the pointer to the elements is NULL");
    WRONG(opd_graph_unpack(g, NULL, out, 2) == 0, "value 0 is NULL");
    WRONG(opd_graph_constant(g, opd_value_tensor(leaf)), "Cannot insert a Tensor that requires grad as a constant");
    WRONG(opd_graph_constant(g, opd_value_tensors(&leaf, 1)), "Cannot insert a Tensor that requires grad as a constant");
    WRONG(opd_graph_constant(g, opd_value_default()), "cannot be a constant");
    WRONG(opd_graph_constant(g, opd_value_ints(NULL, 3)), "cannot be a constant");
    WRONG(opd_graph_constant(g, opd_value_object(g)), "cannot be a constant");
    WRONG(opd_graph_input(g, "1x", NULL), "'1x' is not a name");
    WRONG(opd_graph_input(g, "a b", NULL), "'a b' is not a name");
    WRONG(opd_graph_input(g, NULL, "int"), "the value cannot have the type 'int'");
    WRONG(opd_graph_input(g, NULL, "Float(2, strides=[1, 1])"), "opd_graph_input: there are more strides than sizes");
    WRONG(opd_graph_input(g, NULL, "Float(2) x"), "there is more text after the type: ' x'");
    WRONG(opd_graph_describe(g, one, NULL, "float") == 0, "the value cannot have the type 'float'");
    WRONG(opd_graph_describe(g, foreign, "z", NULL) == 0, "the value is not a value of this graph");
    WRONG(opd_graph_describe(g, NULL, "z", NULL) == 0, "the value is NULL");
    WRONG(opd_graph_output(g, &one, 1, true) == 0, "output 0 is not a tensor");
    WRONG(opd_graph_output(g, &gone, 1, false) == 0, "value 0 is not a value of this graph");
    WRONG(opd_graph_output(g, NULL, 1, false) == 0, "the pointer to the values is NULL");
    WRONG(opd_graph_erase(g, one) == 0, " is still used");
    WRONG(opd_graph_erase(g, gone) == 0, "the value is not a value of this graph");
    WRONG(opd_graph_erase(g, NULL) == 0, "the value is NULL");
    WRONG(opd_graph_insert_before(g, foreign) == 0, "the value is not a value of this graph");
    CHECK_INT(opd_graph_insert_before(g, y), 0);
    v[0] = y;
    WRONG(opd_graph_call(g, "aten::neg", v, 1, out, 1) >= 0, "value 0 is made after the place where nodes are inserted");
    CHECK_INT(opd_graph_insert_before(g, NULL), 0);
    CHECK_INT(opd_graph_call(g, "aten::neg", v, 1, out, 1), 1);
    CHECK(opd_graph_find(g, "7") == out[0]);      /* no number is lost */
    for (k = 0; k < 2; k++) {                     /* NULL and pending errors, everywhere */
        opd_graph *h = k ? g : NULL;
        if (k) { (void)opd_fail(OPD_ERROR_USER, "pending"); }
#define NOTHING(call) CHECK(!(call)); if (!k) { CHECK_ERROR(OPD_ERROR_ARGUMENT, ": the graph is NULL"); }
        NOTHING(opd_graph_input(h, NULL, NULL)); NOTHING(opd_graph_constant(h, opd_value_int(1)));
        NOTHING(opd_graph_list(h, "int", v, 0)); NOTHING(opd_graph_unpack(h, list, out, 1) == 0);
        NOTHING(opd_graph_call(h, "aten::exp", v, 1, out, 1) >= 0);
        NOTHING(opd_graph_call_op(h, opd_find("aten::exp"), v, 1, out, 1) >= 0);
        NOTHING(opd_graph_describe(h, x, "z", NULL) == 0); NOTHING(opd_graph_insert_before(h, x) == 0);
        NOTHING(opd_graph_output(h, v, 1, false) == 0); NOTHING(opd_graph_erase(h, x) == 0);
    }
    opd_error_clear();
    CHECK(!opd_graph_find(NULL, "x") && !opd_graph_find(g, NULL) && !opd_graph_find(g, "nobody"));
    CHECK_OK();
    opd_graph_free(g);
    opd_graph_free(other);
}
/* A graph that came as a text is changed: exp(x) * 2 becomes tanh(exp(x)) * 2, of one input less. */
/* A number as an argument of type Tensor does not influence the dtype of the result, as in a call. */
TEST(graphs_take_numbers_for_tensors) {
    static const int32_t three[] = {1, 2, 3};
    opd_tensor *x = opd_tensor_from(three, OPD_INTS(3), OPD_INT32), *want[2], *results[2];
    int form;
    want[0] = OPD_CALL(opd_find("aten::mul.Tensor"), x, 2);
    want[1] = OPD_CALL(opd_find("aten::add.Tensor"), want[0], 1.5, 1);
    for (form = 0; form < 4; form++) {
        opd_graph *g = opd_graph_new(), *again;
        opd_graph_value *args[2], *y[2];
        args[0] = opd_graph_input(g, "x", NULL);
        args[1] = opd_graph_constant(g, opd_value_int(2));
        CHECK_INT(opd_graph_call(g, "aten::mul.Tensor", args, 2, &y[0], 1), 1);
        args[0] = y[0];
        args[1] = opd_graph_constant(g, opd_value_double(1.5));
        CHECK_INT(opd_graph_call_op(g, opd_find("aten::add.Tensor"), args, 2, &y[1], 1), 1);
        CHECK_INT(opd_graph_output(g, y, 2, false), 0);
        if (form == 1) {
            (void)opd_graph_print(g, text, sizeof text);
            again = opd_graph_parse(text);
            opd_graph_free(g);
            g = again;
        } else if (form == 2) {
            CHECK_INT(opd_graph_save(g, path()), 0);
            opd_graph_free(g);
            g = opd_graph_load(path());
            (void)remove(path());
        } else if (form == 3) {
            opd_graph_free(g);
            g = opd_graph_parse("graph(%x : Tensor):\n  %2 : int = prim::Constant[value=2]()\n"
                                "  %half : float = prim::Constant[value=1.5]()\n"
                                "  %4 : Tensor = aten::mul.Tensor(%x, %2)\n  %5 : Tensor = aten::add.Tensor(%4, %half)\n"
                                "  %6 : (Tensor, Tensor) = prim::TupleConstruct(%4, %5)\n  return (%6)\n");
        }
        CHECK_OK();
        CHECK_INT(opd_graph_run(g, &x, 1, results, 2), 2);
        if (g && opd_ok()) {
            CHECK_INT(opd_dtype(results[0]), opd_dtype(want[0]));
            CHECK_INT(opd_dtype(results[1]), opd_dtype(want[1]));
            CHECK(same(results[1], want[1]));
        }
        opd_graph_free(g);
    }
    {
        opd_graph *g = opd_graph_new();
        opd_graph_value *args[2], *y;
        args[0] = opd_graph_constant(g, opd_value_int(2));
        args[1] = opd_graph_input(g, "x", NULL);
        CHECK_INT(opd_graph_call(g, "aten::mul_.Tensor", args, 2, &y, 1), -1);   /* nothing is written into a number */
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected a value of type 'Tensor");
        opd_graph_free(g);
    }
}

/* Many values get the same name: names stay unique, and a new name gets the lowest free number. */
TEST(graphs_have_many_names) {
    enum { N = 20000 };
    static opd_graph_value *all[N];
    opd_graph *g = opd_graph_new();
    opd_graph_value *x = opd_graph_input(g, "x", NULL), *v = x;
    char name[32];
    int i;
    for (i = 0; i < N; i++) {
        CHECK_INT(opd_graph_call(g, "aten::neg", &v, 1, &v, 1), 1);
        CHECK_INT(opd_graph_describe(g, v, "y", NULL), 0);
        all[i] = v;
    }
    for (i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, i < N - 1 ? "y.%d" : "y", i + 1);
        CHECK(opd_graph_find(g, name) == all[i]);
    }
    CHECK(opd_graph_find(g, "y.20000") == NULL && opd_graph_find(g, "z") == NULL && opd_graph_find(g, "x") == x);
    CHECK_INT(opd_graph_describe(g, all[6], "seven", NULL), 0);
    CHECK_INT(opd_graph_describe(g, x, "y", NULL), 0);
    CHECK(opd_graph_find(g, "y.7") == all[N - 1] && opd_graph_find(g, "y") == x && opd_graph_find(g, "x") == NULL);
    CHECK_INT(opd_graph_erase(g, all[N - 2]), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "%y.19999 is still used");
    CHECK_INT(opd_graph_call(g, "aten::abs", &all[0], 1, &v, 1), 1);             /* used once more */
    for (i = N - 1; i > 0; i--) { CHECK_INT(opd_graph_erase(g, all[i]), 0); }
    CHECK_INT(opd_graph_erase(g, all[0]), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "%y.1 is still used");
    CHECK_INT(opd_graph_erase(g, v), 0);
    CHECK_INT(opd_graph_erase(g, all[0]), 0);
    CHECK_INT(opd_graph_count(g, NULL), 0);
    CHECK(opd_graph_find(g, "y.1") == NULL);
    opd_graph_free(g);
}

TEST(graphs_are_changed_by_hand) {
    opd_graph *g = opd_graph_parse("graph(%x : Tensor, %unused : Tensor):\n  %1 : Tensor = aten::exp(%x)\n"
                                   "  %2 : int = prim::Constant[value=2]()\n  %y : Tensor = aten::mul(%1, %2)\n"
                                   "  return (%y)\n");
    opd_graph_value *e = opd_graph_find(g, "1"), *y = opd_graph_find(g, "y"), *t, *args[2];
    opd_tensor *in[2], *out, *want;
    in[0] = in[1] = numbers(opd_ints_of(two_three, 2));
    CHECK_INT(opd_graph_run(g, in, 2, &out, 1), 1);
    CHECK_INT(opd_graph_insert_before(g, y), 0);
    CHECK_INT(opd_graph_call(g, "aten::tanh", &e, 1, &t, 1), 1);
    args[0] = t;
    args[1] = opd_graph_find(g, "2");
    CHECK_INT(opd_graph_call(g, "aten::mul", args, 2, &t, 1), 1);
    CHECK_INT(opd_graph_describe(g, t, "y", NULL), 0);
    CHECK_INT(opd_graph_output(g, &t, 1, true), 0);
    CHECK_INT(opd_graph_output(g, &t, 1, false), 0);             /* the list goes */
    CHECK_INT(opd_graph_erase(g, y), 0);
    CHECK_INT(opd_graph_erase(g, opd_graph_find(g, "unused")), 0);
    CHECK_OK();
    (void)opd_graph_print(g, text, sizeof text);
    CHECK_STR(text, "graph(%x : Tensor):\n  %1 : Tensor = aten::exp(%x)\n  %2 : int = prim::Constant[value=2]()\n"
              "  %3 : Tensor = aten::tanh(%1)\n  %y : Tensor = aten::mul(%3, %2)\n  return (%y)\n");
    CHECK_INT(opd_graph_run(g, in, 1, &out, 1), 1);
    want = opd_mul_Scalar(opd_tanh(opd_exp(in[0])), opd_value_int(2));
    CHECK(same(out, want));
    CHECK_INT(opd_graph_describe(g, opd_graph_find(g, "x"), "y", NULL), 0);      /* as setDebugName has it */
    CHECK_INT(opd_graph_describe(g, opd_graph_find(g, "1"), "y", NULL), 0);
    CHECK_INT(opd_graph_describe(g, opd_graph_find(g, "y.1"), "", NULL), 0);
    (void)opd_graph_print(g, text, sizeof text);
    CHECK(strstr(text, "graph(%y.2 : Tensor):\n  %y : Tensor = aten::exp(%y.2)\n") == text);
    CHECK(strstr(text, " = aten::mul(%3, %2)\n") != NULL);
    CHECK_INT(opd_graph_output(g, NULL, 0, false), 0);
    CHECK_INT(opd_graph_run(g, in, 1, NULL, 0), 0);
    CHECK_INT(opd_graph_dce(g), 4);
    (void)opd_graph_print(g, text, sizeof text);
    CHECK_STR(text, "graph(%y.2 : Tensor):\n  return ()\n");
    CHECK(!opd_graph_call(g, "aten::exp", &e, 1, &t, 1) || !opd_ok());            /* e went with that */
    opd_error_clear();
    opd_graph_free(g);
}
static uint32_t rng = 1;
static int dice(int n) { rng = rng * 1664525u + 1013904223u; return (int)((rng >> 8) % (uint32_t)n); }
/* After random valid and invalid calls, the graph can be printed, parsed, saved, loaded and run. */
TEST(random_steps) {
    static const char *const ops[] = {"aten::exp", "aten::add", "aten::mul", "aten::cat", "aten::split", "aten::sum",
        "aten::view", "aten::add_", "aten::mm", "aten::softmax", "aten::max", "aten::clone", "nothing", "aten::zeros"};
    static const char *const words[] = {"Tensor", "int", "float", "bool", "Scalar", "Tensor?", "", "x", "y.1", "2", "a"};
    int round, ran = 0, unfinished = 0;
    rng = 1;
    for (round = 0; round < 400; round++) {
        opd_graph *g = opd_graph_new(), *h;
        opd_graph_value *v[300], *args[6], *res[6];
        opd_tensor *in[12], *out[8], *same_out[8];
        int n = 0, step, i, k, nin;
        opd_scope scope = opd_scope_open();
        for (step = 0; step < 30; step++) {
            const int64_t ints[] = {2, 3};
            opd_value c[7];
            opd_tensor *t = numbers(opd_ints_of(two_three, 2));
            c[0] = opd_value_int(dice(5) - 2); c[1] = opd_value_double(0.5); c[2] = opd_value_bool(true);
            c[3] = opd_value_none(); c[4] = opd_value_ints(ints, 2); c[5] = opd_value_tensor(t);
            c[6] = opd_value_tensors(&t, 1);
            k = dice(5);
            for (i = 0; i < k; i++) { args[i] = n && dice(12) ? v[dice(n)] : NULL; }
            switch (dice(9)) {
            case 0: case 1:
                if (opd_graph_ninputs(g) < 10) { v[n] = opd_graph_input(g, dice(2) ? words[dice(11)] : NULL, NULL); n += v[n] != NULL; }
                break;
            case 2: v[n] = opd_graph_constant(g, c[dice(7)]); n += v[n] != NULL; break;
            case 3: v[n] = opd_graph_list(g, words[dice(8)], args, k); n += v[n] != NULL; break;
            case 4:
                if (n && opd_graph_unpack(g, v[dice(n)], res, k) == 0) { for (i = 0; i < k; i++) { v[n++] = res[i]; } }
                break;
            case 5: if (n && dice(4) == 0) { (void)opd_graph_erase(g, v[dice(n)]); } break;
            case 6: if (n) { (void)opd_graph_insert_before(g, dice(3) ? NULL : v[dice(n)]); } break;
            case 7: if (n) { (void)opd_graph_describe(g, v[dice(n)], words[dice(11)], dice(2) ? NULL : "Float(2, 3)"); } break;
            default: k = opd_graph_call(g, ops[dice(14)], args, k, res, 6); for (i = 0; i < k; i++) { v[n++] = res[i]; } break;
            }
            opd_error_clear();
        }
        (void)opd_graph_insert_before(g, NULL);
        for (k = 0; n && k < 3; k++) { args[k] = v[dice(n)]; }
        unfinished += !n || opd_graph_output(g, args, 1 + dice(3), dice(2) == 0) != 0;
        opd_error_clear();
        (void)opd_graph_print(g, text, sizeof text);
        h = strstr(text, "<Tensor>") ? NULL : opd_graph_parse(text);             /* its constants have two dims */
        CHECK_OK();
        if (h) { (void)opd_graph_print(h, text2, sizeof text2); CHECK_STR(text2, text); }
        opd_graph_free(h);
        CHECK_INT(opd_graph_save(g, path()), 0);
        h = opd_graph_load(path());
        if (!opd_ok()) { printf("%s\n%s", opd_error_message(), text); }
        CHECK_OK();
        (void)opd_graph_print(h, text2, sizeof text2);
        CHECK_STR(text2, text);
        nin = opd_graph_ninputs(g);
        for (i = 0; i < nin; i++) { in[i] = numbers(opd_ints_of(two_three, 2)); }
        k = opd_graph_run(g, in, nin, out, 8);
        ran += k > 0;
        opd_error_clear();
        for (i = 0; i < nin; i++) { in[i] = numbers(opd_ints_of(two_three, 2)); }
        CHECK_INT(opd_graph_run(h, in, nin, same_out, 8), k);
        for (i = 0; i < k; i++) { CHECK((!out[i] && !same_out[i]) || same(out[i], same_out[i])); }
        opd_error_clear();
        opd_graph_free(h);
        h = opd_graph_load(path());               /* a run may have written into its constants */
        if (opd_graph_cse(h) >= 0 && opd_graph_fold(h) >= 0 && opd_graph_dce(h) >= 0) {
            for (i = 0; i < nin; i++) { in[i] = numbers(opd_ints_of(two_three, 2)); }
            if (k > 0) { CHECK_INT(opd_graph_run(h, in, nin, same_out, 8), k); }
            for (i = 0; i < k; i++) { CHECK((!out[i] && !same_out[i]) || same(out[i], same_out[i])); }
        }
        opd_error_clear();
        opd_graph_free(g);
        opd_graph_free(h);
        opd_scope_close(&scope);
    }
    (void)remove(path());
    CHECK(ran > 50 && unfinished < 350);
    if (ran <= 50) { printf("%d ran, %d unfinished\n", ran, unfinished); }
}

//-- custom operators ----------------------------------------------------------------------------------------------------

static int twice_kernel(opd_call *call) {         /* what it calls is its own business */
    return opd_return_tensor(call, opd_add(opd_arg_tensor(call, 0), opd_arg_tensor(call, 0)));
}
static int twice_backward(opd_backward_call *b) {
    return opd_bw_return(b, 0, opd_mul_Scalar(opd_bw_grad(b, 0), opd_value_int(2)));
}
static int kinds_kernel(opd_call *call) { return opd_return_tensor(call, opd_neg(opd_arg_tensor(call, 0))); }
static int count_kernel(opd_call *call) {
    return opd_return_value(call, opd_value_int(opd_numel(opd_arg_tensor(call, 0))));
}
static int names_kernel(opd_call *call) {
    const int64_t two[] = {2, 3};
    const double pair[] = {1, -2};
    if (opd_return_value(call, opd_value_str("a name")) || opd_return_value(call, opd_value_ints(two, 2)) ||
        opd_return_value(call, opd_value_complex(pair))) { return -1; }
    return opd_return_tensor(call, opd_exp(opd_arg_tensor(call, 0)));
}
static int logged;
static int log_kernel(opd_call *call) { logged += opd_arg_tensor(call, 0) != NULL; return 0; }
OPD_LIBRARY(gt, lib) {
    opd_op_desc d;
    opd_def_options anything;
    memset(&d, 0, sizeof d);
    d.schema = "twice(Tensor self) -> Tensor";
    d.any = twice_kernel;
    d.backward = twice_backward;
    d.vmap = OPD_BATCH_POINTWISE;
    d.autocast = OPD_AUTOCAST_LOWER;
    opd_define(lib, &d);
    memset(&d, 0, sizeof d);
    d.schema = "kinds(Tensor self, int i, float f, bool b, str s, Device d, complex c, int[] l, float[] m, bool[] n, "
               "Scalar k, Scalar[] p, int? none, Tensor?[] t, Generator? g=None, int[2] e=[3, 4]) -> Tensor";
    d.any = kinds_kernel;
    opd_define(lib, &d);
    opd_def(lib, "count(Tensor self) -> int");
    opd_def(lib, "names(Tensor self) -> (str, int[], complex, Tensor)");
    opd_def(lib, "log(Tensor self) -> ()");
    memset(&anything, 0, sizeof anything);
    anything.alias = OPD_ALIAS_CONSERVATIVE;
    opd_def_with(lib, "anything(Tensor self) -> Tensor", &anything);
}
OPD_LIBRARY_IMPL(gt, CompositeExplicitAutograd, lib) {
    opd_impl(lib, "count", count_kernel);
    opd_impl(lib, "names", names_kernel);
    opd_impl(lib, "log", log_kernel);
    opd_impl(lib, "anything", kinds_kernel);
}
static opd_tensor *call_one(const char *name, opd_tensor *x) {
    opd_value v = opd_value_tensor(x);
    return opd_call_op(opd_find(name), &v, 1);
}
static int use_twice(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_tanh(call_one("gt::twice", in[0]));
    return 1;
}
static int use_twice_mapped(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_vmap(use_twice, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
static int use_twice_cast(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int rc = -1;
    OPD_AUTOCAST(OPD_CPU) { rc = use_twice(user, in, n, out); }
    return rc;
}
TEST(own_operators_are_traced) {
    opd_tensor *x = opd_tensor_set_requires_grad(numbers(opd_ints_of(two_three, 2)), true), *y, *z, *a, *b;
    opd_graph *g = opd_graph_trace(use_twice, NULL, &x, 1, NULL);
    CHECK_INT(opd_graph_count(g, NULL), 2);                      /* nothing of what its kernel calls */
    CHECK_INT(opd_graph_count(g, "gt::twice"), 1);
    CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
    (void)use_twice(NULL, &x, 1, &z);
    CHECK(same(y, z));
    y = opd_sum(y);
    z = opd_sum(z);
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, NULL, &a), 0);
    CHECK_INT(opd_autograd_grad(&z, 1, &x, 1, NULL, &b), 0);
    CHECK(same(a, b));
    x = opd_detach(x);
    OPD_AUTOCAST(OPD_CPU) {                       /* the region in which it runs counts */
        CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
        CHECK_INT(opd_dtype(y), OPD_BFLOAT16);
    }
    CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
    CHECK_INT(opd_dtype(y), OPD_FLOAT32);
    opd_graph_free(g);
}
TEST(own_operators_are_traced_under_vmap_and_autocast) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *y, *z;
    opd_graph *g = opd_graph_trace(use_twice_mapped, NULL, &x, 1, NULL);
    CHECK_OK();
    CHECK(opd_graph_count(g, "gt::twice") >= 1);
    x = opd_neg(x);
    CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
    (void)use_twice_mapped(NULL, &x, 1, &z);
    CHECK(same(y, z));
    opd_graph_free(g);
    g = opd_graph_trace(use_twice_cast, NULL, &x, 1, NULL);
    CHECK_OK();
    CHECK_INT(opd_graph_count(g, "gt::twice"), 1);
    CHECK_INT(opd_graph_count(g, "aten::to") + opd_graph_count(g, "aten::_to_copy"), 1);        /* the cast is recorded */
    x = opd_neg(x);
    CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
    (void)use_twice_cast(NULL, &x, 1, &z);
    CHECK_INT(opd_dtype(y), OPD_BFLOAT16);
    CHECK(same(y, z));
    opd_graph_free(g);
}
static int use_kinds(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t ints[] = {1, -9000000000};
    const double floats[] = {0.1, INFINITY}, c[] = {1.5, -2};
    const bool bools[] = {true, false};
    opd_tensor *list[2];
    opd_value v[14], scalars[3];
    (void)user; (void)n;
    list[0] = in[0];
    list[1] = NULL;
    scalars[0] = opd_value_int(3); scalars[1] = opd_value_double(1e22); scalars[2] = opd_value_bool(true);
    v[0] = opd_value_tensor(in[0]); v[1] = opd_value_int(-7); v[2] = opd_value_double(3); v[3] = opd_value_bool(true);
    v[4] = opd_value_str("a \"quoted\" \\ text\n\twith \x01 bytes \xc3\xa9"); v[5] = opd_value_device(opd_device_make(OPD_CPU, -1));
    v[6] = opd_value_complex(c); v[7] = opd_value_ints(ints, 2); v[8] = opd_value_doubles(floats, 2);
    v[9] = opd_value_bools(bools, 2); v[10] = opd_value_double(0.1); v[11] = opd_value_list(scalars, 3);
    v[12] = opd_value_none(); v[13] = opd_value_tensors(list, 2);
    out[0] = opd_call_op(opd_find("gt::kinds"), v, 14);
    return 1;
}
TEST(constants_of_all_kinds) {
    opd_tensor *x = numbers(opd_ints_of(three, 1)), *y;
    opd_graph *g = opd_graph_trace(use_kinds, NULL, &x, 1, NULL), *h;
    CHECK_OK();
    (void)opd_graph_print(g, text, sizeof text);
    CHECK(strstr(text, "%1 : int = prim::Constant[value=-7]()\n  %2 : float = prim::Constant[value=3.]()\n"
                 "  %3 : bool = prim::Constant[value=1]()\n"
                 "  %4 : str = prim::Constant[value=\"a \\\"quoted\\\" \\\\ text\\n\\twith \\001 bytes ") != NULL);
    CHECK(strstr(text, "  %5 : Device = prim::Constant[value=\"cpu\"]()\n"
                 "  %6 : complex = prim::Constant[value=1.5-2.j]()\n") != NULL);
    CHECK(strstr(text, " : float = prim::Constant[value=0.10000000000000001]()\n") && strstr(text, "[value=inf]()\n"));
    CHECK(strstr(text, " : NoneType = prim::Constant()\n") && strstr(text, " : Tensor?[] = prim::ListConstruct(%0, "));
    h = opd_graph_parse(text);
    CHECK_OK();
    (void)opd_graph_print(h, text2, sizeof text2);
    CHECK_STR(text2, text);
    CHECK_INT(opd_graph_run(h, &x, 1, &y, 1), 1);
    CHECK(same(y, opd_neg(x)));
    CHECK_INT(opd_graph_save(g, path()), 0);
    opd_graph_free(h);
    h = opd_graph_load(path());
    CHECK_OK();
    (void)opd_graph_print(h, text2, sizeof text2);
    CHECK_STR(text2, text);
    CHECK(opd_graph_cse(h) > 0);
    CHECK_INT(opd_graph_run(h, &x, 1, &y, 1), 1);
    opd_graph_free(g);
    opd_graph_free(h);
    (void)remove(path());
}
TEST(values_of_all_kinds_within_a_graph) {        /* results that are no tensors, and what becomes of them */
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *y;
    opd_graph *g = opd_graph_parse(
        "graph(%x):\n  %s, %l, %c, %e = gt::names(%x)\n  %n = gt::count(%x)\n  %minus : int = prim::Constant[value=-1]()\n"
        "  %d0 = prim::Constant[value=1]()\n  %a = aten::size(%x, %d0)\n  %sizes = prim::ListConstruct(%a, %minus)\n"
        "  %v = aten::view(%e, %sizes)\n  %y = aten::add(%v, %n)\n  return (%y)\n");
    CHECK_OK();
    (void)opd_graph_print(g, text, sizeof text);
    CHECK(strstr(text, "%s : str, %l : int[], %c : complex, %e : Tensor = gt::names(%x)\n") != NULL);
    CHECK(strstr(text, "%sizes : int[] = prim::ListConstruct(%a, %minus)\n") != NULL);
    CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
    CHECK(same(y, opd_add_Scalar(opd_view(opd_exp(x), opd_ints_of(three_two, 2)), opd_value_int(6))));
    x = numbers(opd_ints_of(four_three, 2));      /* sizes are asked for at each run */
    CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
    CHECK_INT(opd_size(y, 0), 3);
    opd_graph_free(g);
}
static int use_effects(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_value v = opd_value_tensor(in[0]);
    (void)user; (void)n;
    (void)opd_exp(in[0]);                         /* nobody needs it */
    (void)opd_call_op(opd_find("gt::log"), &v, 1);
    (void)opd_call_op(opd_find("gt::log"), &v, 1);
    (void)call_one("gt::anything", in[0]);
    (void)call_one("gt::anything", in[0]);
    out[0] = opd_add(opd_dropout(in[0], 0.5, true), opd_dropout(in[0], 0.5, true));
    return 1;
}
static opd_tensor *in_place(const char *name, opd_tensor *x, opd_value with) {
    opd_value v[2];
    v[0] = opd_value_tensor(x);
    v[1] = with;
    return opd_call_op(opd_find(name), v, 2);
}
static int use_writes(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *c = opd_clone(in[0]), *row = opd_select(c, 0, 1);
    (void)user; (void)n;
    out[3] = opd_exp(c);
    (void)in_place("aten::add_.Tensor", row, opd_value_tensor(opd_ones(opd_ints_of(three, 1), OPD_FLOAT32)));
    (void)in_place("aten::mul_.Scalar", in[0], opd_value_int(2));               /* the caller's tensor */
    out[0] = opd_exp(c);
    out[1] = opd_exp(in[0]);
    (void)in_place("aten::sub_.Scalar", c, opd_value_int(1));                   /* behind the last use */
    out[2] = opd_exp(c);
    return 4;
}
TEST(passes_keep_effects_writes_and_random_numbers) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *in, *other, *out[4], *want[4];
    opd_graph *g = opd_graph_trace(use_effects, NULL, &x, 1, NULL);
    int i, round;
    CHECK_OK();
    CHECK_INT(opd_graph_count(g, "aten::exp"), 0);
    CHECK(opd_graph_cse(g) >= 0 && opd_graph_fold(g) >= 0 && opd_graph_dce(g) >= 0);
    CHECK_INT(opd_graph_count(g, "gt::log"), 2);
    CHECK_INT(opd_graph_count(g, "gt::anything"), 2);
    CHECK_INT(opd_graph_count(g, "aten::dropout"), 2);
    logged = 0;
    CHECK_INT(opd_graph_run(g, &x, 1, out, 3), 1);
    CHECK_INT(logged, 2);
    CHECK_INT(opd_graph_run(g, &x, 1, want, 3), 1);
    (void)opd_graph_print(g, text, sizeof text);
    opd_graph_free(g);
    for (round = 0; round < 2; round++) {
        in = opd_clone(x);
        g = opd_graph_trace(use_writes, NULL, &in, 1, NULL);
        CHECK(same(in, opd_mul_Scalar(x, opd_value_int(2))));                   /* tracing runs it */
        if (round) { CHECK(opd_graph_cse(g) >= 0 && opd_graph_fold(g) >= 0 && opd_graph_dce(g) >= 0); }
        CHECK_INT(opd_graph_count(g, "aten::exp"), 4);
        CHECK_INT(opd_graph_count(g, "aten::add_"), 1);
        CHECK_INT(opd_graph_count(g, "aten::mul_"), 1);
        in = opd_clone(x);
        other = opd_clone(x);
        CHECK_INT(opd_graph_run(g, &in, 1, out, 4), 4);
        CHECK_INT(use_writes(NULL, &other, 1, want), 4);
        for (i = 0; i < 4; i++) { CHECK(same(out[i], want[i])); }
        CHECK(same(in, other));
        opd_graph_free(g);
    }
}
static int constants_only(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *part = opd_full(opd_ints_of(two_three, 2), opd_value_double(2), OPD_FLOAT32);
    (void)user; (void)n;
    out[0] = opd_add(in[0], opd_cat(opd_tensors_of(&part, 1), 0));
    return 1;
}
TEST(folding_takes_lists) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *a, *b;
    opd_graph *g = opd_graph_trace(constants_only, NULL, &x, 1, NULL);
    CHECK(opd_graph_fold(g) > 0);
    CHECK_INT(opd_graph_count(g, "aten::cat"), 0);
    CHECK_INT(opd_graph_count(g, NULL), 3);       /* the constant, alpha, and add */
    CHECK_INT(opd_graph_run(g, &x, 1, &a, 1), 1);
    (void)constants_only(NULL, &x, 1, &b);
    CHECK(same(a, b));
    opd_graph_free(g);
}
static int splits(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensors a = opd_split(in[0], 1, 0), b = opd_split(in[0], 1, 0);
    (void)user; (void)n;
    out[0] = opd_add(opd_exp(a.data[0]), opd_exp(b.data[0]));
    out[1] = opd_exp(b.data[1]);
    return 2;
}
TEST(equal_parts_of_lists_are_merged) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *out[2], *want[2];
    opd_graph *g = opd_graph_trace(splits, NULL, &x, 1, NULL);
    CHECK_INT(opd_graph_cse(g), 6);               /* split, its two arguments, its parts, exp, and one of the ones */
    CHECK_INT(opd_graph_count(g, "aten::split"), 1);
    CHECK_INT(opd_graph_count(g, "aten::exp"), 2);
    CHECK_INT(opd_graph_run(g, &x, 1, out, 2), 2);
    (void)splits(NULL, &x, 1, want);
    CHECK(same(out[0], want[0]) && same(out[1], want[1]));
    opd_graph_free(g);
}
static int random_sums(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_add(in[0], opd_rand(opd_ints_of(two_three, 2), OPD_FLOAT32));
    out[0] = opd_add(out[0], opd_randn(opd_ints_of(two_three, 2), OPD_FLOAT32));
    out[0] = opd_add(out[0], opd_rand(opd_ints_of(two_three, 2), OPD_FLOAT32));
    return 1;
}
static int random_sum(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_add(in[0], opd_rand(opd_ints_of(two_three, 2), OPD_FLOAT32));
    return 1;
}
TEST(random_operators_are_drawn_in_each_run) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *a, *b;
    opd_graph *g = opd_graph_trace(random_sum, NULL, &x, 1, NULL);
    CHECK(opd_graph_fold(g) >= 0 && opd_graph_cse(g) >= 0);
    CHECK_INT(opd_graph_count(g, "aten::rand"), 1);
    CHECK_INT(opd_graph_run(g, &x, 1, &a, 1), 1);
    CHECK_INT(opd_graph_run(g, &x, 1, &b, 1), 1);
    CHECK(!same(a, b));
    opd_manual_seed(5);
    CHECK_INT(opd_graph_run(g, &x, 1, &a, 1), 1);
    opd_manual_seed(5);
    (void)random_sum(NULL, &x, 1, &b);
    CHECK(same(a, b));
    opd_graph_free(g);
}
/* Draws numbers that nothing uses: in the function itself, in dropout, and in both sides of a condition. */
static int drawn_side(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    (void)opd_randn(opd_ints_of(two_three, 2), OPD_FLOAT32);
    out[0] = opd_rand_like(in[0]);
    return 1;
}
static int draws_unused(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    (void)opd_rand(opd_ints_of(two_three, 2), OPD_FLOAT32);
    (void)opd_dropout(in[0], 0.5, true);
    opd_tensor *const pred = opd_gt_Scalar(opd_sum(in[0]), opd_value_int(-1000));
    if (opd_cond(pred, drawn_side, drawn_side, NULL, in, 1, out, 1) < 0) { return -1; }
    return random_sum(user, in, 1, out);
}
TEST(unused_random_operators_stay) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *a[4], *b[4];
    for (int compiled = 0; compiled < 2; compiled++) {
        opd_graph *g = opd_graph_trace(draws_unused, NULL, &x, 1, NULL);
        CHECK(opd_graph_fold(g) >= 0 && opd_graph_cse(g) >= 0 && opd_graph_dce(g) >= 0);
        CHECK_INT(opd_graph_count(g, "aten::dropout"), 1);
        CHECK_INT(opd_graph_count(g, "aten::rand_like"), 2);
        CHECK_INT(opd_graph_count(g, "aten::rand"), 2);
        if (compiled) { CHECK(opd_graph_fuse_pointwise(g, 2) >= 0); }
        opd_manual_seed(5);
        CHECK_INT(opd_graph_run(g, &x, 1, a, 1), 1);
        a[1] = opd_rand_like(x);
        opd_manual_seed(5);
        CHECK_INT(draws_unused(NULL, &x, 1, b), 1);
        b[1] = opd_rand_like(x);
        CHECK(same(a[0], b[0]) && same(a[1], b[1]));
        opd_graph_free(g);
        CHECK_OK();
    }
}
/* A chain of operators on 1 MiB: two results live at a time, whatever its length. */
static int chain(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int i;
    (void)user; (void)n;
    for (out[0] = in[0], i = 0; i < 20; i++) {
        opd_tensor *parts[2];
        parts[0] = opd_tanh(out[0]);
        parts[1] = opd_neg(out[0]);
        out[0] = i % 2 ? opd_add(parts[0], parts[1])
            : opd_slice(opd_cat(opd_tensors_of(parts, 2), 0), 0, opd_value_int(0), opd_value_int(1 << 18), 1);
    }
    return 1;
}
TEST(values_go_after_their_last_use) {
    const int64_t mib = 1 << 20, n = 1 << 18;
    int64_t live, grown;
    opd_tensor *x = opd_ones(opd_ints_of(&n, 1), OPD_FLOAT32), *out;
    opd_graph *g = opd_graph_trace(chain, NULL, &x, 1, NULL);
    CHECK_OK();
    OPD_SCOPE { CHECK_INT(opd_graph_run(g, &x, 1, &out, 1), 1); }
    live = opd_memory_stats().live;
    OPD_SCOPE {
        opd_memory_reset_peak();
        CHECK_INT(opd_graph_run(g, &x, 1, &out, 1), 1);
        grown = opd_memory_stats().peak - live;
        CHECK(grown > 3 * mib && grown < 6 * mib);               /* tanh, neg, and cat of both; a slice keeps its cat */
        CHECK(opd_memory_stats().live - live < 3 * mib);         /* only the result is live */
    }
    CHECK_INT(opd_memory_stats().live, live);
    OPD_SCOPE {
        opd_memory_reset_peak();
        (void)chain(NULL, &x, 1, &out);
        CHECK(opd_memory_stats().peak - live > 30 * mib);        /* a scope keeps all */
    }
    opd_graph_free(g);
}

//-- reading values while recording --------------------------------------------------------------------------------------

static char heard[2000];
static void hear(void *user, int is_error, const char *message) {
    (void)user; (void)is_error;
    (void)snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", message);
}
enum { DATA, ITEM, ITEM_OPERATOR, EQUAL, COUNT, DLPACK, NPY, BLOB, WEIGHT, SIZES, WAYS };
static int reads_by(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *e = opd_exp(in[0]), *w = opd_ones(opd_ints_of(two_three, 2), OPD_FLOAT32);
    opd_value v = opd_value_tensor(opd_sum(e)), pair[2];
    double d = 1;
    (void)n;
    pair[0] = pair[1] = opd_value_tensor(e);
    switch (*(int *)user) {
    case DATA: d = opd_data_f32(e) ? opd_data_f32(e)[0] : 0; break;
    case ITEM: d = opd_item_f64(v.u.t); break;
    case ITEM_OPERATOR: d = opd_call_value(opd_find("aten::item"), &v, 1).u.d; break;
    case EQUAL: d = (double)opd_call_value(opd_find("aten::equal"), pair, 2).u.i; break;
    case COUNT: d = (double)opd_call_value(opd_find("gt::count"), pair, 1).u.i; break;
    case DLPACK: opd_dlpack_import(opd_dlpack_export(e, 0), 0); break;
    case NPY: (void)opd_npy_save(path(), e); break;
    case BLOB: d = opd_data(opd_tensor_data(e)) != NULL; break;
    case WEIGHT:                                  /* a constant of the graph may be read: it depends on nothing */
        w = numbers(opd_ints_of(two_three, 2));
        e = opd_mul(e, w);
        d = opd_data_f32(w) ? opd_data_f32(w)[0] : 0;
        break;
    default: d = (double)opd_size(e, 1) + (double)opd_call_value(opd_find("aten::numel"), pair, 1).u.i; break;
    }
    if (!opd_ok()) { return -1; }
    out[0] = opd_add_Scalar(e, opd_value_double(d));
    return 1;
}
TEST(nothing_is_a_constant_in_silence) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *y, *z;
    opd_trace_options o;
    int i;
    memset(&o, 0, sizeof o);
    for (i = 0; i < WAYS; i++) {
        opd_graph *g = opd_graph_trace(reads_by, &i, &x, 1, &o);
        if (i >= WEIGHT) { CHECK_OK(); opd_graph_free(g); continue; }
        CHECK(g == NULL);
        if (!strstr(opd_error_message(), "Define an operator whose kernel reads it (opd_define)")) {
            printf("%d: %s\n", i, opd_error_message());
        }
        CHECK(strstr(opd_error_message(), "of a traced tensor, a result of aten::") != NULL);
        CHECK(strstr(opd_error_message(), "Define an operator whose kernel reads it (opd_define)") != NULL);
        opd_error_clear();
        heard[0] = 0;
        opd_log_set(hear, NULL);
        o.allow_constants = true;                 /* a warning and a constant */
        g = opd_graph_trace(reads_by, &i, &x, 1, &o);
        o.allow_constants = false;
        opd_log_set(NULL, NULL);
        CHECK_OK();
        CHECK(strstr(heard, "is read: values that are computed from it will be constants of the graph") != NULL);
        CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
        (void)reads_by(&i, &x, 1, &z);
        CHECK(same(y, z));                        /* of these inputs */
        opd_graph_free(g);
    }
    (void)remove(path());
}
static int through_data(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_exp(opd_tensor_data(in[0]));
    out[1] = opd_exp(opd_alias(in[0]));
    out[2] = opd_exp(opd_detach(in[0]));
    out[3] = opd_exp(opd_contiguous(in[0]));
    out[4] = opd_exp(opd_to_dtype(in[0], OPD_FLOAT64));
    return 5;
}
TEST(other_tensors_of_the_same_value_are_followed) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *out[5], *want[5];
    opd_graph *g = opd_graph_trace(through_data, NULL, &x, 1, NULL);
    int i;
    CHECK_OK();
    x = opd_neg(x);
    CHECK_INT(opd_graph_run(g, &x, 1, out, 5), 5);
    (void)through_data(NULL, &x, 1, want);
    for (i = 0; i < 5; i++) { CHECK(same(out[i], want[i])); }
    opd_graph_free(g);
}
static int difference(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sub(in[0], in[1]);
    return 1;
}
TEST(one_tensor_given_twice_is_two_inputs) {
    static const char *const names[] = {"a", "a"}, *const bad[] = {"1a"};
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *in[2], *y;
    opd_trace_options o;
    opd_graph *g;
    memset(&o, 0, sizeof o);
    o.names = names;
    o.nnames = 2;
    in[0] = in[1] = x;
    g = opd_graph_trace(difference, NULL, in, 2, &o);
    (void)opd_graph_print(g, text, sizeof text);
    CHECK(strstr(text, "graph(%a.1 : Float(") == text && strstr(text, " = aten::sub(%a.1, %a, "));
    in[1] = opd_exp(x);
    CHECK_INT(opd_graph_run(g, in, 2, &y, 1), 1);
    CHECK(same(y, opd_sub(x, in[1])));
    opd_graph_free(g);
    o.names = bad;
    CHECK(opd_graph_trace(difference, NULL, in, 2, &o) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'1a' is not a name");
}

//-- check ---------------------------------------------------------------------------------------------------------------

static int shifting(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t many = 20;
    (void)user; (void)n;
    out[0] = opd_add(opd_sum(in[0]), opd_clone(opd_full(opd_ints_of(&many, 1), opd_value_double(++calls), OPD_FLOAT32)));
    return 1;
}
static int shifting_outside(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t many = 20;
    opd_tensor *c = opd_tensor_new(opd_ints_of(&many, 1), OPD_FLOAT32);          /* not by an operator: a constant */
    int i;
    (void)user; (void)n;
    calls++;
    for (i = 0; c && i < 20; i++) { opd_data_f32(c)[i] = (float)(calls > 2 && user ? 3 : user ? 2 : calls); }
    out[0] = opd_add(opd_sum(in[0]), c);
    return 1;
}
TEST(check_finds_constants_values_and_random_numbers) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *in;
    opd_trace_options o;
    opd_graph *g;
    const char *at;
    memset(&o, 0, sizeof o);
    o.check = true;
    calls = 0;
    CHECK(opd_graph_trace(shifting, NULL, &x, 1, &o) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Graphs differed across invocations!");
    calls = 0;
    CHECK(opd_graph_trace(shifting_outside, NULL, &x, 1, &o) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Tensor-valued Constant nodes differed in value across invocations.");
    heard[0] = 0;
    opd_log_set(hear, NULL);
    calls = 0;
    g = opd_graph_trace(shifting_outside, &o, &x, 1, &o);        /* the third call differs: a warning */
    CHECK_OK();
    CHECK(strstr(heard, "Output nr 1. of the traced function does not match") != NULL);
    opd_graph_free(g);
    heard[0] = 0;
    g = opd_graph_trace(random_sum, NULL, &x, 1, &o);
    CHECK_OK();
    CHECK(strstr(heard, "Trace had nondeterministic nodes: aten::rand") != NULL);
    opd_graph_free(g);
    heard[0] = 0;                                 /* one warning, however many there are */
    g = opd_graph_trace(random_sums, NULL, &x, 1, &o);
    CHECK_OK();
    at = strstr(heard, "Trace had nondeterministic nodes: aten::rand and 2 more\n");
    CHECK(at && !strstr(at + 1, "Trace had"));
    opd_graph_free(g);
    heard[0] = 0;                                 /* what writes its inputs is given copies of them */
    in = opd_clone(x);
    g = opd_graph_trace(use_writes, NULL, &in, 1, &o);
    CHECK_OK();
    CHECK_STR(heard, "");
    CHECK(same(in, opd_mul_Scalar(x, opd_value_int(2))));
    opd_graph_free(g);
    opd_log_set(NULL, NULL);
}

static int drawn(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)in;
    out[0] = opd_exp(opd_ones(opd_ints_of(three, 1), OPD_FLOAT32));
    return n ? -1 : 1;
}
TEST(functions_without_inputs) {
    opd_tensor *y;
    opd_trace_options o;
    opd_graph *g;
    memset(&o, 0, sizeof o);
    o.check = true;
    g = opd_graph_trace(drawn, NULL, NULL, 0, &o);
    CHECK_OK();
    CHECK(opd_graph_fold(g) > 0);
    CHECK_INT(opd_graph_run(g, NULL, 0, &y, 1), 1);
    CHECK(same(y, opd_exp(opd_ones(opd_ints_of(three, 1), OPD_FLOAT32))));
    opd_graph_free(g);
}

//-- operators that change or go -----------------------------------------------------------------------------------------

TEST(operators_that_go_or_change_after_the_recording) {
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *y;
    opd_library *lib = opd_library_open(OPD_DEF, "gone2", NULL, "gone2.c", 7), *impl;
    opd_graph *g;
    opd_def(lib, "op(Tensor self) -> Tensor");
    impl = opd_library_open(OPD_IMPL, "gone2", "CompositeExplicitAutograd", "gone2.c", 8);
    opd_impl(impl, "op", twice_kernel);
    g = opd_graph_parse("graph(%x):\n  %y = gone2::op(%x)\n  return (%y)\n");
    CHECK_OK();
    CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
    CHECK_INT(opd_graph_save(g, path()), 0);
    opd_library_close(impl);
    opd_library_close(lib);
    CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), -1);
    CHECK(strstr(opd_error_message(), "gone2::op") != NULL);
    opd_error_clear();
    CHECK(opd_graph_load(path()) == NULL);
    CHECK(strstr(opd_error_message(), "there is no operator gone2::op: load the library that defines it (when the graph "
                 "was saved it was registered at gone2.c:7") != NULL);
    opd_error_clear();
    lib = opd_library_open(OPD_DEF, "gone2", NULL, "gone2.c", 9);                /* of more arguments and results */
    opd_def(lib, "op(Tensor self, Tensor other, Tensor more) -> (Tensor, Tensor)");
    CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), -1);
    CHECK(strstr(opd_error_message(), "gone2::op") != NULL);
    opd_error_clear();
    opd_library_close(lib);
    opd_graph_free(g);
    (void)remove(path());
}

//-- texts and files -----------------------------------------------------------------------------------------------------

#define STARS_8 "*, *, *, *, *, *, *, *, "
#define STARS_32 STARS_8 STARS_8 STARS_8 STARS_8
TEST(texts_that_are_no_graph) {
    static const struct { const char *text, *says; } bad[] = {
        {"", "line 1 of the graph: expected 'graph('"}, {"graph(%x):\n  return (%y)\n", "Cannot find a variable with name 'y'"},
        {"graph(%1):\n  %1 = aten::exp(%1)\n  return (%1)\n", "the name %1 is used already"},
        {"graph(%x):\n  %y : int = aten::exp(%x)\n  return (%x)\n",
         "Annotated type int does not match schema type Tensor for operator aten::exp"},
        {"graph(%x):\n  %y : int[] = aten::split(%x, %x)\n  return (%x)\n", "Expected a value of type 'int' for argument"},
        {"graph(%x):\n  %i : int = prim::Constant[value=1]()\n  %y = aten::sum.dim_IntList(%x, %x)\n  return (%x)\n",
         "Expected a value of type 'int[]?' for argument 'dim' but instead found type 'Tensor'."},
        {"graph(%x):\n  %y = aten::mm.out(%x, %x)\n  return (%x)\n", "aten::mm.out() is missing value for argument 'out'."},
        {"graph(%x):\n  %y = aten::nothing(%x)\n  return (%y)\n", "there is no operator aten::nothing"},
        {"graph(%x):\n  %y = aten::add(%x)\n  return (%y)\n", "no overload of aten::add takes these values"},
        {"graph(%x):\n  %y = aten::mm(%x, %x, %x, %x)\n  return (%y)\n", "no overload of aten::mm"},
        {"graph(%x):\n  %y : int = prim::Constant[value=1.5]()\n  return (%x)\n", "the constant does not have its type"},
        {"graph(%x):\n  %y : Float(3) = prim::Constant[value=<Tensor>]()\n  return (%x)\n", "save the graph instead"},
        {"graph(%x : Float(2, strides=[1, 1])):\n  return (%x)\n", "more strides than sizes"},
        {"graph(%x : Float(2, 2, strides=[1])):\n  return (%x)\n", "2 sizes, but 1 strides"},
        {"graph(%x : Float(" STARS_32 STARS_32 "*)):\n  return (%x)\n", "more than 64 dims"},
        {"graph(%x):\n  %1x = aten::exp(%x)\n  return (%x)\n", "%1x is not a name"},
        {"graph(%x):\n  return (%x)\nmore", "line 3 of the graph: there is more text after the graph"},
        {"graph(%x):\n  %l : int[] = prim::ListConstruct(%x)\n  return (%x)\n", "element 0 of the list does not have the type of the list"},
        {"graph(%x):\n  %y = prim::If(%x)\n  return (%x)\n", "expected 'block0('"},
        {"graph(%x : wrong):\n  return (%x)\n", "expected a type"}, {"graph(%x", "expected ','"}};
    size_t i;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(opd_graph_parse(bad[i].text) == NULL);
        if (!strstr(opd_error_message(), bad[i].says)) { printf("%s: %s\n", bad[i].text, opd_error_message()); }
        CHECK(strstr(opd_error_message(), bad[i].says) != NULL);
        opd_error_clear();
    }
    CHECK(opd_graph_parse(NULL) == NULL);
    opd_error_clear();
}
TEST(defaults_overloads_and_constants_in_texts) {
    const int64_t last = 1;
    opd_tensor *x = numbers(opd_ints_of(two_three, 2)), *y;
    opd_graph *g = opd_graph_parse("graph(%x):\n  %k : int = prim::Constant[value=2]()\n  %y = aten::mul.Scalar(%x, %k)\n"
                                   "  %z = aten::pow(%y, %k) # a comment\n  %one : int = prim::Constant[value=1]()\n"
                                   "  %s = aten::sum.dim_IntList(%z, %one)\n  return (%s)\n");      /* one number for int[1] */
    CHECK_OK();
    CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
    CHECK(same(y, opd_sum_dim(opd_pow_Tensor_Scalar(opd_mul_Scalar(x, opd_value_int(2)), opd_value_int(2)),
                              opd_ints_of(&last, 1), false)));
    CHECK_INT(opd_graph_run(g, &x, 2, &y, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "expected 1 inputs but got 2");
    opd_graph_free(g);
}
TEST(files_come_back_and_damaged_ones_do_not) {
    opd_tensor *w = numbers(opd_ints_of(three_two, 2)), *x = numbers(opd_ints_of(two_three, 2)), *a, *b;
    opd_graph *g = opd_graph_trace(affine, w, &x, 1, NULL), *h;
    static unsigned char file[20000], bad[20000];
    size_t n = 0, i;
    FILE *f;
    CHECK_INT(opd_graph_save(g, path()), 0);
    h = opd_graph_load(path());
    CHECK_OK();
    (void)opd_graph_print(g, text, sizeof text);
    (void)opd_graph_print(h, text2, sizeof text2);
    CHECK_STR(text2, text);
    CHECK_INT(opd_graph_run(h, &x, 1, &a, 1), 1);
    (void)affine(w, &x, 1, &b);
    CHECK(same(a, b));
    f = fopen(path(), "rb");
    if (f) { n = fread(file, 1, sizeof file, f); fclose(f); }
    CHECK(n > 100 && n < sizeof file);
    for (i = 0; i < n; i++) {                     /* each byte wrong in turn, and each length */
        memcpy(bad, file, n);
        bad[i] ^= 0x41;
        CHECK(opd_graph_from_bytes(bad, n) == NULL && !opd_ok());
        opd_error_clear();
        CHECK(opd_graph_from_bytes(file, i) == NULL && !opd_ok());
        opd_error_clear();
    }
    CHECK(opd_graph_load("/nowhere/graph") == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "/nowhere/graph: ");
    CHECK_INT(opd_graph_save(g, "/nowhere/graph"), -1);
    opd_error_clear();
    (void)remove(path());
    opd_graph_free(g);
    opd_graph_free(h);
}
static int exp_neg(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_neg(opd_exp(in[0]));
    return out[0] ? 1 : -1;
}
TEST(places_of_calls_stay) {
    static const char with[] = "graph(%x : Float(2, strides=[1], requires_grad=0, device=cpu)):\n"
        "  %y : Float(2, strides=[1], requires_grad=0, device=cpu) = aten::exp(%x) # a file.c:12\n"
        "  %z : Float(2, strides=[1], requires_grad=0, device=cpu) = aten::neg(%y)\n  return (%z)\n";
    opd_trace_options o;
    opd_tensor *x = numbers(opd_ints_of(two_three, 2));
    opd_graph *g = opd_graph_parse(with), *h;
    (void)opd_graph_print(g, text, sizeof text);
    CHECK_STR(text, with);
    CHECK_INT(opd_graph_save(g, path()), 0);
    h = opd_graph_load(path());
    (void)opd_graph_print(h, text, sizeof text);
    CHECK_STR(text, with);
    opd_graph_free(g);
    opd_graph_free(h);
    (void)remove(path());
    memset(&o, 0, sizeof o);
    o.locations = true;
    o.check = true;
    g = opd_graph_trace(exp_neg, NULL, &x, 1, &o);
    CHECK_OK();
    (void)opd_graph_print(g, text, sizeof text);
    h = opd_graph_parse(text);                    /* with places where the build has debug information */
    (void)opd_graph_print(h, text2, sizeof text2);
    CHECK_STR(text2, text);
    opd_graph_free(g);
    opd_graph_free(h);
}
TEST(unknown_operators_are_named) {
    static const char calls[] = "graph(%x : Tensor):\n  %y : Tensor = gone::op(%x)\n  return (%y)\n";
    char more[400];
    CHECK(opd_graph_parse(calls) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "line 2 of the graph: there is no operator gone::op: load the library that defines it");
    (void)snprintf(more, sizeof more, "%s# gone::opera of other.so\n# gone::op registered at a.c:3 of b.so\n", calls);
    CHECK(opd_graph_parse(more) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "gone::op: load the library that defines it (when the graph was saved it was "
                "registered at a.c:3 of b.so)");
}
TEST(allocations_of_a_builder_fail) {
    int64_t n, live = 0;
    int failed = 0;
    for (n = 1; n < 3000; n++) {
        int64_t seen;
        opd_graph *g;
        opd_graph_value *x, *both[2];
        int k;
        opd_memory_trim();
        live = opd_memory_stats().live;
        OPD_SCOPE {
            (void)opd_memory_fail_at(n, false);
            g = every_kind_by_hand();
            for (k = 0; g && k < 40; k++) {       /* what fails leaves a graph that others go on with */
                int64_t ints[8] = {0};
                if (!opd_ok()) { CHECK_INT(opd_error_code(), OPD_ERROR_MEMORY); failed++; }
                opd_error_clear();
                (void)opd_graph_constant(g, opd_value_ints(ints, 8));
                x = both[0] = both[1] = opd_graph_find(g, "x");
                if (x) { (void)opd_graph_call(g, "aten::add", both, 2, NULL, 0); }
                if (x && opd_graph_call(g, "aten::sum", &x, 1, &x, 1) == 1) { (void)opd_graph_output(g, &x, 1, k & 1); }
                (void)opd_graph_input(g, "x", NULL);
            }
            (void)opd_graph_dce(g);
            seen = opd_memory_fail_at(0, false);
            CHECK(opd_ok() || opd_error_code() == OPD_ERROR_MEMORY);
            opd_error_clear();
            (void)opd_graph_print(g, text, sizeof text);
            if (g) {                              /* what is there is a graph */
                opd_graph *h = opd_graph_parse(text);
                CHECK_OK();
                opd_graph_free(h);
            }
            opd_graph_free(g);
        }
        if (n > 20) { CHECK_INT(opd_memory_stats().live, live); }
        if (seen < n) { break; }
    }
    CHECK(n > 60 && n < 3000 && failed > 30);
}
TEST(allocations_fail) {
    opd_tensor *w = numbers(opd_ints_of(three_two, 2)), *x = numbers(opd_ints_of(two_three, 2)), *y;
    opd_trace_options o;
    int64_t n;
    memset(&o, 0, sizeof o);
    o.locations = true;
    for (n = 1; n < 3000; n++) {
        int64_t seen;
        OPD_SCOPE {
            opd_graph *g, *h = NULL;
            (void)opd_memory_fail_at(n, false);
            g = opd_graph_trace(affine, w, &x, 1, n % 2 ? NULL : &o);
            if (g) { (void)opd_graph_print(g, text, sizeof text); (void)opd_graph_run(g, &x, 1, &y, 1); }
            h = opd_ok() ? opd_graph_parse("graph(%x):\n %y = aten::exp(%x)\n return (%y)\n") : NULL;
            if (opd_ok()) { (void)opd_graph_cse(g); (void)opd_graph_fold(g); }
            seen = opd_memory_fail_at(0, false);
            CHECK(opd_ok() || opd_error_code() == OPD_ERROR_MEMORY);
            opd_error_clear();
            opd_graph_free(g);
            opd_graph_free(h);
        }
        if (seen < n) { break; }
    }
    CHECK(n > 10 && n < 3000);
}

/* max_pool2d is one node: the places of its maxima, which its derivative reads, are not in the graph. */
static opd_tensor *pooled(opd_tensor *x) {
    static opd_op *h;
    return opd_sum(OPD_CALL(OPD_OP(&h, "aten::max_pool2d"), x, OPD_INTS(2, 2)));
}
static int pooled_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = pooled(in[0]);
    return out[0] ? 1 : -1;
}
static int by_the_tape(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = in[0], *y = pooled(x);
    (void)user; (void)n;
    return y && opd_autograd_grad(&y, 1, &x, 1, NULL, out) >= 0 ? 1 : -1;
}
static int by_a_transform(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(pooled_of, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS) < 0 ? -1 : 1;
}
TEST(what_a_derivative_reads_is_no_silent_constant) {
    const double a[4] = {1, 2, 3, 4}, b[4] = {9, 2, 3, 4};
    opd_tensor *x = opd_tensor_from(a, OPD_INTS(1, 1, 2, 2), OPD_FLOAT64), *y, *out = NULL;
    opd_graph *g;
    y = opd_tensor_from(b, OPD_INTS(1, 1, 2, 2), OPD_FLOAT64);
    g = opd_graph_trace(by_a_transform, NULL, &x, 1, NULL);
    CHECK_OR_RETURN(g && opd_graph_run(g, &y, 1, &out, 1) == 1);
    CHECK(opd_data_f64(out)[0] == 1 && opd_data_f64(out)[3] == 0);        /* where y has its greatest, not x */
    opd_graph_free(g);
    (void)opd_tensor_set_requires_grad(x, true);
    CHECK(!opd_graph_trace(by_the_tape, NULL, &x, 1, NULL));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "MaxPool2dWithIndicesBackward0 reads a tensor that was made inside of an operator");
}

/* Backward functions that test for zeros do not test while they are recorded, because the graph may run with others. */
static int product_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_prod(in[0]);
    return out[0] ? 1 : -1;
}
static int product_grad(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(product_of, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS) < 0 ? -1 : 1;
}
/* narrow reads where it starts: in parts, for a derivative, that would be a constant. */
static int narrowed_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static opd_op *h;
    opd_tensor *y = OPD_CALL(OPD_OP(&h, "aten::narrow.Tensor"), in[0], 0, in[1], 1);
    (void)user; (void)n;
    out[0] = y ? opd_sum(opd_mul(y, y)) : NULL;
    return out[0] ? 1 : -1;
}
static int narrowed_grad(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *all[2] = {NULL, NULL};
    if (opd_grad(narrowed_of, user, in, n, NULL, all, 2) < 0) { return -1; }
    out[0] = all[0];
    return 1;
}
TEST(what_a_formula_looks_at_is_no_silent_constant) {
    const double a[3] = {1, 2, 3}, b[3] = {0, 2, 3};
    const int64_t at[2] = {1, 2};
    opd_tensor *x = opd_tensor_from(a, OPD_INTS(3), OPD_FLOAT64), *y, *in[2], *other[2], *out = NULL;
    opd_graph *g = opd_graph_trace(product_grad, NULL, &x, 1, NULL);
    y = opd_tensor_from(b, OPD_INTS(3), OPD_FLOAT64);
    CHECK_OR_RETURN(g && opd_graph_run(g, &y, 1, &out, 1) == 1);
    CHECK_NEAR(opd_data_f64(out)[0], 6, 0);
    CHECK_NEAR(opd_data_f64(out)[1], 0, 0);
    opd_graph_free(g);
    in[0] = other[0] = x;
    in[1] = opd_select(opd_tensor_from(at, OPD_INTS(2), OPD_INT64), 0, 0);
    other[1] = opd_select(opd_tensor_from(at, OPD_INTS(2), OPD_INT64), 0, 1);
    CHECK_OR_RETURN((g = opd_graph_trace(narrowed_of, NULL, in, 2, NULL)) && opd_graph_run(g, other, 2, &out, 1) == 1);
    CHECK_NEAR(opd_item_f64(out), 9, 0);
    opd_graph_free(g);
    CHECK(!opd_graph_trace(narrowed_grad, NULL, in, 2, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::narrow.Tensor: the data of a traced tensor, an input of the graph");
}


/* The derivative by what is not an input but a constant of the graph, as places where an equation has to hold. */
static opd_tensor *weight;
static int weighted(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sum(opd_mul(opd_mul(opd_sin(in[0]), in[0]), weight));
    return out[0] ? 1 : -1;
}
static int weighted_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return opd_grad(weighted, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS); }
static int by_a_constant(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const double at[] = {0.25, 0.5, 0.75, 1, 1.25, 1.5};
    opd_tensor *x = opd_tensor_from(at, OPD_INTS(3), OPD_FLOAT64), *rows = opd_tensor_from(at, OPD_INTS(2, 3), OPD_FLOAT64), *one[1];
    opd_derivative *d;
    weight = in[0];
    if (!x || !rows) { return -1; }
    switch (*(int *)user) {
    case 0: return opd_grad(weighted, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS);
    case 1: return opd_vjp(weighted, NULL, &x, 1, NULL, one, 1, &d) < 0 ? -1 : opd_derivative_call(d, one, 1, 0, out, OPD_TRANSFORM_OUTPUTS);
    case 2: return opd_jvp(weighted, NULL, &x, &x, n, NULL, one, out, 1);
    case 3: return opd_jacrev(weighted, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS);
    case 4: return opd_hessian(weighted, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS);
    default: return opd_vmap(weighted_rows, NULL, &rows, 1, NULL, out, OPD_TRANSFORM_OUTPUTS);
    }
}
static int by_both_sum(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (by_a_constant(user, in, n, out) < 0) { return -1; }
    out[0] = opd_sum(opd_sin(out[0]));
    return out[0] ? 1 : -1;
}
static int by_both(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return opd_grad(by_both_sum, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS); }
TEST(derivatives_by_a_constant) {
    const double first[] = {0.5, 0.25, 2}, other[] = {-1, 3, 0.5};
    opd_tensor *a = opd_tensor_from(first, OPD_INTS(3), OPD_FLOAT64), *b = opd_tensor_from(other, OPD_INTS(3), OPD_FLOAT64);
    for (int i = 0; i < 12; i++) {
        int which = i % 6;
        const opd_transform_fn fn = i < 6 ? by_a_constant : by_both;
        opd_tensor *want[1] = {NULL}, *got[1] = {NULL};
        opd_graph *g = opd_graph_trace(fn, &which, &a, 1, NULL);
        CHECK(g && opd_graph_run(g, &b, 1, got, 1) == 1 && fn(&which, &b, 1, want) == 1);
        CHECK_OK();
        if (got[0] && want[0]) { CHECK(opd_item_f64(opd_max(opd_abs(opd_sub(got[0], want[0])))) < 1e-12); }
        opd_graph_free(g);
    }
}

/* Inputs that are added to a traced or loaded graph follow its other inputs, and do not change these. */
static int sum_of_all(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int i;
    (void)user;
    for (i = 1, out[0] = in[0]; i < n; i++) { out[0] = opd_add(out[0], in[i]); }
    return 1;
}
TEST(inputs_behind_those_of_a_trace) {
    static char text[20000], name[20];
    opd_tensor *in[24], *out[1];
    int n, i, way;
    for (i = 0; i < 24; i++) { in[i] = opd_full(OPD_INTS(2), opd_value_double(i), OPD_FLOAT32); }
    for (n = 2; n < 10; n++) {
        for (way = 0; way < 2; way++) {
            opd_graph *g = opd_graph_trace(sum_of_all, NULL, in, n, NULL);
            if (way && g) {
                (void)opd_graph_print(g, text, sizeof text);
                opd_graph_free(g);
                g = opd_graph_parse(text);
            }
            CHECK_OR_RETURN(g != NULL);
            for (i = 0; i < 12; i++) {
                (void)snprintf(name, sizeof name, "more%d", i);
                CHECK(opd_graph_input(g, name, NULL) != NULL);
            }
            CHECK_INT(opd_graph_ninputs(g), n + 12);
            (void)opd_graph_print(g, text, sizeof text);
            for (i = 0; i < n; i++) {
                (void)snprintf(name, sizeof name, "%%%d : ", i);
                CHECK(strstr(text, name) != NULL);
            }
            CHECK_INT(opd_graph_run(g, in, n + 12, out, 1), 1);
            CHECK_NEAR(opd_item_f64(opd_select(out[0], 0, 1)), n * (n - 1) / 2, 0);
            opd_graph_free(g);
        }
    }
}

/* If a function gives fewer outputs at its third call, the check of a trace fails. */
static int third_is_shorter(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = opd_sin(in[0]);
    out[1] = opd_cos(in[0]);
    return ++*(int *)user == 3 ? 1 : 2;
}
TEST(a_check_with_other_outputs) {
    opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    opd_trace_options o;
    int calls = 0;
    memset(&o, 0, sizeof o);
    o.check = true;
    CHECK(!opd_graph_trace(third_is_shorter, &calls, &x, 1, &o));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function returned 2 outputs, and 1 outputs when it was called again");
}

/* A string constant of any length, also with escaped characters, is the same after saving and loading.  A truncated
   print is the begin of the whole text. */
TEST(long_texts_are_constants) {
    static char word[3001], whole[20000], again[20000], part[700];
    int n, way;
    for (way = 0; way < 2; way++) {
        for (n = 1; n <= 3000; n = n < 590 ? 590 : n < 605 ? n + 1 : n + 479) {
            opd_graph *g = opd_graph_new(), *h;
            opd_graph_value *o[1];
            memset(word, way ? '\001' : 'q', (size_t)n);
            word[n] = 0;
            o[0] = opd_graph_input(g, "x", "Tensor");
            CHECK(opd_graph_constant(g, opd_value_str(word)) != NULL);
            CHECK_INT(opd_graph_output(g, o, 1, false), 0);
            CHECK_INT(opd_graph_save(g, path()), 0);
            h = opd_graph_load(path());
            CHECK_OK();
            CHECK(h && opd_graph_print(g, whole, sizeof whole) == opd_graph_print(h, again, sizeof again));
            CHECK(strcmp(whole, again) == 0 && strlen(whole) > (size_t)n * (way ? 4 : 1));
            CHECK(opd_graph_print(g, part, sizeof part) == strlen(whole) && opd_graph_print(g, NULL, 0) == strlen(whole));
            CHECK(strncmp(part, whole, strlen(part)) == 0);
            CHECK(strlen(part) == (strlen(whole) < sizeof part ? strlen(whole) : sizeof part - 1));
            opd_graph_free(g);
            opd_graph_free(h);
        }
    }
    (void)remove(path());
}
CHECK_MAIN()
