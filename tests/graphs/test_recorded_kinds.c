/* Arguments of every kind in a recorded graph: run, printed and parsed, saved and loaded.  In each
   case the operator gets what it got when it was called, or there is an error that names the operator and the
   argument. */
#include "../check.h"
#include <unistd.h>

static char seen[2000];
static void describe(const opd_value *value) {
    const size_t length = strlen(seen);
    uint64_t key = 0;
    if (value->tag == OPD_TAG_OBJECT) {           /* all objects of these tests are generators */
        const uint64_t used = opd_generator_take((opd_generator *)value->u.object, 0, &key);
        (void)snprintf(seen + length, sizeof seen - length, "generator %d %d", (int)key, (int)used);
    } else if (value->tag == OPD_TAG_TENSOR) {
        (void)snprintf(seen + length, sizeof seen - length, "tensor %g", opd_item_f64(opd_sum(value->u.t)));
    } else if (value->tag == OPD_TAG_TENSORS) {
        for (int i = 0; i < value->n; i++) {
            const opd_value element = value->u.tensors[i] ? opd_value_tensor(value->u.tensors[i]) : OPD_NONE;
            describe(&element);
        }
    } else if (value->tag == OPD_TAG_LIST) {
        (void)snprintf(seen + length, sizeof seen - length, "list");
        for (int i = 0; i < value->n; i++) { describe(&value->u.list[i]); }
    } else if (value->tag == OPD_TAG_CELL && opd_value_cell(*value) == OPD_CELL_TUPLE) {
        (void)snprintf(seen + length, sizeof seen - length, "list");      /* a run passes a tuple as a list */
        for (int i = 0; i < opd_list_count(*value); i++) {
            const opd_value element = opd_list_at(*value, i);
            describe(&element);
        }
    } else { (void)opd_value_print(*value, seen + length, sizeof seen - length); }
    (void)snprintf(seen + strlen(seen), sizeof seen - strlen(seen), ";");
}
static int looks_kernel(opd_call *call) {
    seen[0] = 0;
    describe(opd_call_args(call) + 1);
    return opd_return_tensor(call, opd_neg(opd_arg_tensor(call, 0)));
}
static int looks_fake(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x)) ? 0 : -1;
}

/* The types of the operators' second argument. */
static const char *const types[] = {
    "Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "int", "int?", "float", "float?", "bool", "bool?", "complex", "Scalar",
    "Scalar?", "str", "str?", "Device", "Device?", "ScalarType", "ScalarType?", "Layout", "MemoryFormat?", "SymInt",
    "SymInt[]", "int[]", "int[]?", "int[2]", "float[]", "float[]?", "bool[]", "bool[2]", "Scalar[]", "str[]", "str[]?",
    "Device[]", "complex[]", "Generator", "Generator?", "Stream", "Any", "Any?", "Any[]", "int[][]", "Tensor[][]",
    "(int, Tensor)", "(int, str)", "Dict(str, int)", "Dict(str, Tensor)", "Storage", "QScheme", "Generator[]"};
enum { TYPES = sizeof types / sizeof *types };
static opd_op *ops[TYPES];

/* Values for the argument.  Each operator is called with all values that it takes. */
static opd_generator *own;
static opd_tensor *outside;
enum { VALUES = 24 };
static opd_value value_of(int which, opd_tensor *x) {
    static const int64_t ints[] = {3, -4};
    static const double floats[] = {0.5, -INFINITY}, pair[] = {1.5, -2};
    static const bool bools[] = {true, false};
    static opd_tensor *tensors[2];
    static opd_value list[3], inner[2];
    static char text[16];
    switch (which) {
    case 0: return OPD_NONE;
    case 1: return opd_value_tensor(x);
    case 2: return opd_value_tensor(outside);
    case 3: return opd_value_int(-7);
    case 4: return opd_value_double(2.5);
    case 5: return opd_value_bool(true);
    case 6: return opd_value_complex(pair);
    case 7: (void)strcpy(text, "a \"t\"\n"); return opd_value_str(text);
    case 8: return opd_value_device(opd_device_make(OPD_CPU, -1));
    case 9: return opd_value_ints(ints, 2);
    case 10: return opd_value_doubles(floats, 2);
    case 11: return opd_value_bools(bools, 2);
    case 12: tensors[0] = x; tensors[1] = outside; return opd_value_tensors(tensors, 2);
    case 13: tensors[0] = x; tensors[1] = NULL; return opd_value_tensors(tensors, 2);
    case 14: list[0] = opd_value_int(1); list[1] = opd_value_double(0.25); return opd_value_list(list, 2);
    case 15: list[0] = opd_value_str("a"); list[1] = opd_value_str("b"); return opd_value_list(list, 2);
    case 16: list[0] = opd_value_device(opd_device_make(OPD_META, -1)); return opd_value_list(list, 1);
    case 17: list[0] = opd_value_complex(pair); return opd_value_list(list, 1);
    case 18: list[0] = opd_value_ints(ints, 2); list[1] = opd_value_ints(ints, 1); return opd_value_list(list, 2);
    case 19: tensors[0] = tensors[1] = x; list[0] = list[1] = opd_value_tensors(tensors, 2);
             return opd_value_list(list, 2);
    case 20: list[0] = opd_value_int(5); list[1] = opd_value_tensor(x); return opd_value_list(list, 2);
    case 21: inner[0] = opd_value_int(5); inner[1] = opd_value_str("five"); return opd_tuple_new(inner, 2);
    case 22: {
        opd_value dict = opd_dict_new();
        (void)opd_dict_set(dict, opd_value_str("k"), opd_value_int(9));
        return dict;
    }
    case 23: {
        opd_value dict = opd_dict_new();
        (void)opd_dict_set(dict, opd_value_str("k"), opd_value_tensor(x));
        return dict;
    }
    default: return opd_value_generator(own);
    }
}
OPD_LIBRARY(rk, lib) {
    static char schemas[TYPES][100];
    for (int i = 0; i < TYPES; i++) {
        opd_op_desc desc;
        memset(&desc, 0, sizeof desc);
        (void)snprintf(schemas[i], sizeof schemas[i], "looks%d(Tensor self, %s given) -> Tensor", i, types[i]);
        desc.schema = schemas[i];
        desc.cpu = looks_kernel;
        desc.fake = looks_fake;
        desc.backward = OPD_NOT_DIFFERENTIABLE;
        opd_define(lib, &desc);
    }
}
typedef struct recorded { opd_op *op; int which; } recorded;
static int use(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const recorded *r = (const recorded *)user;
    opd_value args[2];
    (void)n;
    args[0] = opd_value_tensor(in[0]);
    args[1] = value_of(r->which, in[0]);
    out[0] = opd_call_op(r->op, args, 2);
    return out[0] ? 1 : -1;
}
static char text[4000], want[2000];
/* Returns whether the current error names the argument, and clears it. */
static bool says(const recorded *r) {
    const bool right = !opd_ok() && strstr(opd_error_message(), opd_op_name(r->op)) &&
        strstr(opd_error_message(), "argument 'given' is ");
    opd_error_clear();
    return right;
}
/* Runs a graph and compares what the operator sees. */
static bool sees(const opd_graph *g, opd_tensor *x) {
    opd_tensor *y;
    seen[0] = 0;
    if (opd_graph_run(g, &x, 1, &y, 1) == 1 && strcmp(seen, want) == 0) { return true; }
    printf("  saw %s, not %s %s\n", seen, want, opd_error_message());
    opd_error_clear();
    return false;
}
static const char *path(void) {
    static char name[100];
    (void)snprintf(name, sizeof name, "/tmp/opd_recorded_kinds_%d.opd", (int)getpid());
    return name;
}
/* Returns whether a graph that was read from a text or a file sees the same.  Calls check the elements of tuples less
   than the parser does, so a graph with another tuple may be refused. */
static bool reads(opd_graph *g, opd_tensor *x) {
    if (!g) {
        const bool right = strstr(opd_error_message(), "(int, ") != NULL;
        opd_error_clear();
        return right;
    }
    const bool right = sees(g, x);
    opd_graph_free(g);
    return right;
}
static int done, refused, unread;
static void try_call(recorded *r, opd_tensor *x) {
    opd_tensor *y;
    seen[0] = 0;
    if (use(r, &x, 1, &y) != 1 || !opd_ok()) {    /* the operator does not take the value */
        opd_error_clear();
        return;
    }
    (void)snprintf(want, sizeof want, "%s", seen);
    opd_graph *g = opd_graph_trace(use, r, &x, 1, NULL);
    if (!g) {
        CHECK(says(r));
        refused++;
        return;
    }
    bool right = sees(g, x);
    (void)opd_graph_print(g, text, sizeof text);
    if (r->which < 21) { right = reads(opd_graph_parse(text), x) && right; }
    if (opd_graph_save(g, path())) {
        right = says(r) && right;
        unread++;
    } else { right = reads(opd_graph_load(path()), x) && right; }
    (void)remove(path());
    if (!right) { printf("%s, value %d\n", opd_op_name(r->op), r->which); }
    CHECK(right);
    done++;
    opd_graph_free(g);
}
TEST(arguments_of_all_kinds_are_recorded_or_refused) {
    opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    outside = opd_add_Scalar(opd_ones(OPD_INTS(3), OPD_FLOAT32), opd_value_int(1));
    own = opd_generator_new(5);
    (void)opd_generator_take(own, 64, NULL);
    for (int i = 0; i < TYPES; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "rk::looks%d", i);
        if (!(ops[i] = opd_find_quiet(name))) { printf("%s: no operator\n", types[i]); CHECK(false); continue; }
        for (int k = 0; k <= VALUES; k++) {
            recorded r;
            r.op = ops[i];
            r.which = k;
            OPD_SCOPE { try_call(&r, x); }
        }
    }
    CHECK(done > 150 && refused >= 10 && unread >= 2);
    opd_generator_free(own);
    CHECK_OK();
}
static int draws(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    opd_tensor *const first = opd_rand_generator(OPD_INTS(2), own, OPD_FLOAT32);
    out[0] = opd_add(in[0], first);
    out[1] = opd_add(in[0], opd_rand_generator(OPD_INTS(2), own, OPD_FLOAT32));
    return 2;
}
TEST(a_graph_draws_from_its_generator) {
    opd_tensor *x = opd_zeros(OPD_INTS(2), OPD_FLOAT32), *y[2], *want_y[2];
    own = opd_generator_new(5);
    CHECK_INT(draws(NULL, &x, 1, want_y), 2);
    opd_generator_seed(own, 5);
    opd_graph *g = opd_graph_trace(draws, NULL, &x, 1, NULL), *h;
    CHECK_OR_RETURN(g != NULL);
    opd_generator_seed(own, 5);
    (void)opd_graph_print(g, text, sizeof text);
    CHECK(strstr(text, " : Generator = prim::Constant[value=torch.Generator(device=\"cpu\", seed=5)]()\n") != NULL);
    CHECK_INT(opd_graph_save(g, path()), 0);
    h = opd_graph_load(path());
    (void)remove(path());
    for (int i = 0; i < 2; i++) {                 /* the loaded graph has one generator of its own, with the same state */
        CHECK_INT(opd_graph_run(i ? h : g, &x, 1, y, 2), 2);
        for (int k = 0; k < 2; k++) { CHECK(opd_item_i64(opd_all(opd_eq(y[k], want_y[k])))); }
    }
    CHECK_INT(opd_generator_take(own, 0, NULL), 128);
    opd_graph_free(h);
    opd_generator_seed(own, 5);
    opd_generator_free(own);                      /* the graph keeps it */
    CHECK_INT(opd_graph_run(g, &x, 1, y, 2), 2);
    CHECK(opd_item_i64(opd_all(opd_eq(y[1], want_y[1]))));
    CHECK(opd_graph_parse("graph(%x):\n  %g : Generator = prim::Constant[value=torch.Generator(seed=5)]()\n  return (%x)\n")
          == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "expected 'torch.Generator(device=\"cpu\", seed='");
    opd_graph_free(g);
    CHECK_OK();
}
CHECK_MAIN()
