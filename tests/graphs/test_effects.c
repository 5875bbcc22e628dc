/* Side effects and random numbers of calls in graphs: what a call writes, and whether it draws, depends on its
   arguments, such as `training`.  Passes keep every call that writes, and merge no calls that draw.  A walk builds a
   graph with each operator of the library. */
#include "../cases.h"

//-- the walk ----------------------------------------------------------------------------------------------------------

/* Adds a value for an argument of type `type` to the graph: an input for a tensor, else a constant.  Returns NULL for
   other types. */
static opd_graph_value *value_for(opd_graph *g, const char *type, bool flag) {
    static const int64_t ints[] = {1, 1};
    static const double floats[] = {0.5, 0.5};
    static const bool bools[] = {true, true};
    const size_t n = strcspn(type, "(?[ ");
    const bool list = strchr(type, '[') != NULL;
    if (n == 6 && strncmp(type, "Tensor", n) == 0) {
        opd_graph_value *tensor = opd_graph_input(g, NULL, NULL);
        return list ? opd_graph_list(g, "Tensor", &tensor, 1) : tensor;
    }
    if (n == 4 && strncmp(type, "bool", n) == 0) {
        return opd_graph_constant(g, list ? opd_value_bools(bools, 2) : opd_value_bool(flag));
    }
    if ((n == 5 && strncmp(type, "float", n) == 0) || (n == 6 && strncmp(type, "Scalar", n) == 0)) {
        return opd_graph_constant(g, list ? opd_value_doubles(floats, 2) : opd_value_double(0.5));
    }
    if ((n == 3 && strncmp(type, "int", n) == 0) || (n == 6 && strncmp(type, "SymInt", n) == 0) ||
        (n == 10 && strncmp(type, "ScalarType", n) == 0)) {
        return opd_graph_constant(g, list ? opd_value_ints(ints, 2) : opd_value_int(6));
    }
    if (n == 3 && strncmp(type, "str", n) == 0) { return opd_graph_constant(g, opd_value_str("none")); }
    return NULL;
}
/* Adds two equal calls of an operator with values for all its arguments, and writes the constants among them to
   `known`.  Returns the number of arguments, or -1 if the walk does not make the call. */
static int two_calls(opd_graph *g, opd_op *op, bool flag, opd_value *known) {
    static char text[4000];
    opd_graph_value *args[OPD_MAX_ARGS];
    int n = 0;
    (void)opd_schema_print(opd_op_schema(op), text, sizeof text);
    for (char *at = strchr(text, '(') + 1; *at != ')'; n++) {
        if (at[0] == '*' && at[1] == ',') { at += 3; }
        char *end = at;
        bool quoted = false;
        for (int depth = 0; quoted || depth || (*end != ',' && *end != ')'); end++) {
            quoted ^= *end == '"' || *end == '\'';
            depth += *end == '(' || *end == '[';
            depth -= *end == ')' || *end == ']';
        }
        const bool standard = memchr(at, '=', (size_t)(end - at)) != NULL;
        if (!(args[n] = value_for(g, at, flag)) && !standard) { return -1; }      /* NULL: the default */
        known[n] = strncmp(at, "bool", 4) == 0 && at[4] != '[' ? opd_value_bool(flag)
            : strncmp(at, "float ", 6) == 0 || strncmp(at, "float?", 6) == 0 ? opd_value_double(0.5) : OPD_DEFAULT;
        at = end + (*end == ',' ? 2 : 0);
    }
    for (int k = 0; k < 2; k++) { if (opd_graph_call_op(g, op, args, n, NULL, 0) < 0) { return -1; } }
    return n;
}
TEST(passes_ask_what_a_call_does_with_its_arguments) {
    static opd_op *ops[4000];
    opd_value known[OPD_MAX_ARGS];
    int made = 0, by_flag = 0, drawn = 0;
    const int count = opd_op_list(NULL, ops, 4000);
    CHECK(count <= 4000);
    for (int i = 0; i < count && i < 4000; i++) {
        const opd_schema *schema = opd_op_schema(ops[i]);
        bool stayed[2] = {false, false};
        for (int flag = 0; flag < 2; flag++) {
            opd_graph *g = opd_graph_new();
            const char *const name = opd_op_name(ops[i]);
            const int n = two_calls(g, ops[i], flag, known);
            char base[200];
            bool writes = n >= 0 && opd_schema_nreturns(schema) == 0;
            (void)snprintf(base, sizeof base, "%.*s", (int)strcspn(name, "."), name);
            opd_error_clear();
            for (int k = 0; k < n; k++) { writes = writes || opd_schema_is_mutable_at(schema, k, known); }
            const bool draws = n >= 0 && opd_schema_is_nondeterministic(schema, known);
            if (n >= 0) {
                CHECK(opd_graph_cse(g) >= 0);
                const int left = opd_graph_count(g, base);
                if (left != 1 + (writes || draws) && left != 2) { printf("%s: cse left %d\n", name, left); }
                CHECK(writes || draws ? left == 2 : left >= 1);
                CHECK(opd_graph_dce(g) >= 0);
                const int rest = opd_graph_count(g, base);
                if ((writes || draws) && rest != 2) { printf("%s: dce left %d\n", name, rest); }
                CHECK((!writes && !draws) || rest == 2);
                stayed[flag] = rest > 0;
                made++;
                drawn += draws;
            }
            opd_graph_free(g);
        }
        by_flag += stayed[0] != stayed[1];
    }
    CHECK(made > 3000 && by_flag >= 4 && drawn > 100);
    CHECK_OK();
}
/* Every operator that draws random numbers, when it trains with dropout, has the tag of random operators. */
TEST(what_draws_has_the_tag) {
    static op_case c;
    int drawn = 0;
    for (int i = 0; i < OPD_OP_COUNT; i++) {
        const opd_op *op = opd_op_builtin((opd_op_id)i);
        const char *text = op && has_cases(op) && check_walks(opd_op_name(op)) ? cases_of(op) : "";
        memset(&c, 0, sizeof c);
        c.op = op;
        c.dtype = OPD_FLOAT32;
        while (*text && case_read_next(&c, &text)) {
            const opd_schema *schema = opd_op_schema(op);
            uint64_t key = 0;
            OPD_SCOPE {
                opd_value rets[OPD_MAX_ARGS];
                for (int k = 0; k < c.nargs; k++) {
                    const char *const name = opd_schema_arg_name(schema, k);
                    if (c.args[k].tag == OPD_TAG_BOOL && strncmp(name, "train", 5) == 0) { c.args[k].u.i = 1; }
                    if (c.args[k].tag == OPD_TAG_FLOAT && strncmp(name, "dropout", 7) == 0) { c.args[k].u.d = 0.5; }
                }
                const uint64_t before = opd_generator_take(NULL, 0, &key);
                (void)opd_call_all((opd_op *)(uintptr_t)op, rets, c.args, c.nargs);
                opd_error_clear();
                if (opd_generator_take(NULL, 0, &key) == before) { continue; }
                drawn++;
                if (opd_schema_is_nondeterministic(schema, NULL)) { continue; }
                printf("%s draws random numbers\n", opd_op_name(op));
                CHECK(!"the tag is missing");
            }
        }
    }
    CHECK(drawn > 20 || getenv("CHECK_PART"));
    CHECK_OK();
}

//-- what the passes keep ----------------------------------------------------------------------------------------------

static int unused_norms(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *stats[2];
    (void)n;
    const bool train = *(const bool *)user;
    (void)opd_batch_norm(in[0], NULL, NULL, in[1], in[2], train, 0.1, 1e-5, false);
    (void)opd_instance_norm(in[0], NULL, NULL, in[1], in[2], train, 0.1, 1e-5, false);
    if (train) { (void)opd_batch_norm_update_stats(stats, in[0], in[1], in[2], 0.1); }
    out[0] = opd_neg(in[0]);
    return 1;
}
TEST(an_unused_norm_in_training_stays) {
    bool train = true;
    opd_tensor *in[3] = {opd_randn(OPD_INTS(4, 3, 5), OPD_FLOAT32), opd_zeros(OPD_INTS(3), OPD_FLOAT32),
                         opd_ones(OPD_INTS(3), OPD_FLOAT32)}, *y, *want[2];
    opd_graph *g = opd_graph_trace(unused_norms, &train, in, 3, NULL);
    CHECK_OR_RETURN(g != NULL);
    CHECK_INT(opd_graph_count(g, "aten::batch_norm"), 1);
    CHECK_INT(opd_graph_count(g, "aten::instance_norm"), 1);
    CHECK_INT(opd_graph_count(g, "aten::batch_norm_update_stats"), 1);
    for (int i = 0; i < 2; i++) { want[i] = opd_clone(in[1 + i]); }
    opd_zero_(in[1]);
    opd_fill_(in[2], opd_value_int(1));
    CHECK_INT(opd_graph_run(g, in, 3, &y, 1), 1);
    for (int i = 0; i < 2; i++) { CHECK(opd_item_i64(opd_all(opd_eq(want[i], in[1 + i]))) != 0); }
    CHECK(opd_data_f32(in[1])[0] < 0 || opd_data_f32(in[1])[0] > 0);
    opd_graph_free(g);
    train = false;
    CHECK_OR_RETURN((g = opd_graph_trace(unused_norms, &train, in, 3, NULL)) != NULL);
    CHECK_INT(opd_graph_count(g, NULL), 1);
    opd_graph_free(g);
}
static int attends_twice(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *y[2];
    (void)n;
    for (int i = 0; i < 2; i++) {
        y[i] = opd_scaled_dot_product_attention_full(in[0], in[0], in[0], NULL, *(const double *)user, false, OPD_NONE,
                                                     false);
    }
    out[0] = opd_sum(opd_abs(opd_sub(y[0], y[1])));
    return 1;
}
TEST(calls_with_dropout_are_not_merged) {
    opd_tensor *x = opd_randn(OPD_INTS(1, 2, 4, 8), OPD_FLOAT32), *y;
    for (int i = 0; i < 2; i++) {
        double dropout = i ? 0 : 0.5;
        opd_graph *g = opd_graph_trace(attends_twice, &dropout, &x, 1, NULL);
        CHECK_OR_RETURN(g != NULL);
        CHECK(opd_graph_cse(g) >= 0);
        CHECK_INT(opd_graph_count(g, "aten::scaled_dot_product_attention"), i ? 1 : 2);
        CHECK_INT(opd_graph_run(g, &x, 1, &y, 1), 1);
        CHECK((opd_item_f64(y) > 0) == (i == 0));
        opd_graph_free(g);
    }
}
static int attends_in_vmap(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    opd_tensor *const other = (opd_tensor *)user;
    out[0] = opd_scaled_dot_product_attention(in[0], other, other, NULL, 0, false);
    return 1;
}
TEST(attention_without_dropout_is_not_random_in_vmap) {
    opd_tensor *x = opd_randn(OPD_INTS(3, 2, 4, 8), OPD_FLOAT32), *other = opd_randn(OPD_INTS(2, 4, 8), OPD_FLOAT32), *y;
    CHECK_INT(opd_vmap(attends_in_vmap, other, &x, 1, NULL, &y, 1), 1);
    CHECK_INT(opd_ndim(y), 4);
    y = opd_sub(y, opd_scaled_dot_product_attention(x, opd_expand(other, OPD_INTS(3, 2, 4, 8)),
                                                    opd_expand(other, OPD_INTS(3, 2, 4, 8)), NULL, 0, false));
    CHECK(opd_item_f64(opd_max(opd_abs(y))) < 1e-5);
    CHECK_OK();
}
CHECK_MAIN()
