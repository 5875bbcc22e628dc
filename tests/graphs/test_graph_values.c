/* Values of graphs that are not tensors: lists, tuples, dicts and strings from C, with the arguments that each
   function accepts and refuses; and constants of every type in the text of a graph, parsed, run, printed, and with
   mistakes. */
#include "../check.h"

TEST(lists_from_c) {
    opd_tensor *two[2];
    const int64_t numbers[] = {7, 8, 9};
    opd_value list = opd_list_new(OPD_TAG_INTS), many;
    CHECK_INT(opd_value_cell(list), OPD_CELL_LIST);
    CHECK_INT(opd_list_append(list, opd_value_int(1)), 0);
    CHECK_INT(opd_list_append(list, opd_value_int(2)), 0);
    CHECK_INT(opd_list_set(list, -1, opd_value_int(5)), 0);
    CHECK_INT(opd_list_count(list), 2);
    CHECK_INT(opd_list_at(list, 1).u.i, 5);
    CHECK_INT(opd_list_set(list, 2, opd_value_int(5)), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_list_set: there is no element 2 in a list of 2 elements");
    CHECK_INT(opd_list_set(list, 0, opd_value_str("a")), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "str");
    CHECK_INT(opd_list_append(list, opd_value_double(2.5)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "float");
    CHECK_INT(opd_list_at(list, 0).u.i, 1);
    CHECK_INT(opd_list_at(list, -3).tag, OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_INDEX, "there is no element -3 in a list of 2 elements");
    CHECK_INT(opd_list_new(OPD_TAG_STR).tag, OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "is not the tag of a list");
    CHECK_INT(opd_list_append(opd_value_int(1), opd_value_int(1)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_list_append");
    CHECK_INT(opd_list_count(opd_value_int(1)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_list_count");
    /* lists that are no cells: what operators take */
    many = opd_value_ints(numbers, 3);
    CHECK_INT(opd_list_count(many), 3);
    CHECK_INT(opd_list_at(many, -1).u.i, 9);
    two[0] = opd_ones(OPD_INTS(1), OPD_FLOAT32);
    two[1] = opd_zeros(OPD_INTS(1), OPD_FLOAT32);
    many = opd_value_tensors(two, 2);
    CHECK(opd_list_at(many, 1).tag == OPD_TAG_TENSOR && opd_list_at(many, 1).u.t == two[1]);
    CHECK_INT(opd_list_at(many, 2).tag, OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_list_at: there is no element 2 in a list of 2 elements");
}
TEST(strings_tuples_and_dicts_from_c) {
    const opd_value parts[2] = {opd_value_int(1), opd_value_str("a")};
    char text[64];
    int64_t length = 0;
    opd_value string = opd_string_new("a\0b", 3), tuple = opd_tuple_new(parts, 2), dict = opd_dict_new(), value;
    CHECK(opd_string_text(&string, &length) != NULL && length == 3);
    CHECK_INT(opd_string_new(NULL, 3).tag, OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_string_new: the text is NULL");
    CHECK(opd_string_text(&tuple, NULL) == NULL && opd_ok());
    CHECK_INT(opd_tuple_new(NULL, 1).tag, OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_tuple_new: the pointer to the elements is NULL");
    CHECK(opd_tuple_name(tuple, 0) == NULL && opd_tuple_name(dict, 0) == NULL && opd_ok());
    CHECK_INT(opd_list_count(tuple), 2);
    CHECK_INT(opd_dict_set(dict, opd_value_str("k"), tuple), 0);
    CHECK_INT(opd_dict_set(dict, opd_value_bool(true), opd_value_int(3)), 0);
    CHECK_INT(opd_dict_set(dict, tuple, opd_value_int(3)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "cannot be a key");
    CHECK_INT(opd_dict_set(dict, opd_list_new(OPD_TAG_INTS), opd_value_int(3)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "cannot be a key");
    CHECK_INT(opd_dict_get(dict, opd_value_str("k"), &value), 1);
    CHECK_INT(opd_value_cell(value), OPD_CELL_TUPLE);
    CHECK_INT(opd_dict_get(dict, opd_value_str("no"), &value), 0);
    CHECK_INT(opd_dict_get(tuple, opd_value_str("no"), &value), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_dict_get");
    CHECK_STR((opd_value_print(dict, text, sizeof text), text), "{k: (1, a), True: 3}");
    CHECK_INT(opd_value_print(dict, text, 4), 20);
    CHECK_STR(text, "{k:");
    value = opd_value_keep(tuple);
    CHECK(value.u.t == tuple.u.t);
    opd_value_release(value);
    CHECK(opd_object_class(tuple) == NULL);
    CHECK_INT(opd_object_get(tuple, "x").tag, OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_object_get");
    CHECK_INT(opd_object_set(tuple, "x", value), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_object_set");
}
TEST(objects_and_named_tuples_of_scripts) {
    opd_script *script = opd_script_compile("class P(NamedTuple):\n    x: int\n    y: str = 'z'\n"
                                            "def f() -> P:\n    return P(1)\n"
                                            "def g() -> P:\n    return P(y='b', x=2)\n", NULL);
    opd_value point, part;
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", NULL, 0, &point), 0);
    CHECK_STR(opd_tuple_name(point, 1), "y");
    CHECK(opd_tuple_name(point, 2) == NULL && opd_tuple_name(point, -1) == NULL);
    part = opd_list_at(point, 1);
    CHECK_STR(opd_string_text(&part, NULL), "z");
    CHECK(strstr(opd_object_class(point), "P") != NULL);
    CHECK_INT(opd_script_run(script, "g", NULL, 0, &point), 0);
    CHECK_INT(opd_list_at(point, 0).u.i, 2);
    opd_script_free(script);
}

/* A constant of a graph and what printing it gives; or, with "!", part of the error of reading the graph. */
static const struct { const char *type, *constant, *want; } constants[] = {
    {"int[]", "[1, 2, -3]", "[1, 2, -3]"},
    {"float[]", "[1, 2.5]", "[1., 2.5]"},
    {"bool[]", "[1, 0]", "[True, False]"},
    {"str[]", "[\"a\", \"b c\"]", "[a, b c]"},
    {"int[]", "[]", "[]"},
    {"int[][]", "[[1], [2, 3], []]", "[[1], [2, 3], []]"},
    {"(int, str)", "(1, \"a\")", "(1, a)"},
    {"(int, (float, bool))", "(1, (2, 1))", "(1, (2., True))"},
    {"Dict(str, int)", "{\"a\": 1, \"b\": 2}", "{a: 1, b: 2}"},
    {"Dict(int, float[])", "{1: [0.5], 2: []}", "{1: [0.5], 2: []}"},
    {"int?", "3", "3"},
    {"float", "3", "3."},
    {"bool", "1", "True"},
    {"complex", "1.5-2j", "1.5-2.j"},
    {"Device", "\"cpu\"", "cpu"},
    {"str", "\"a\\nb\"", "a\nb"},
    {"Device[]", "[\"cpu\"]", "[cpu]"},
    {"Device[]", "[\"nowhere\"]", "!nowhere"},
    {"int?[]", "[1, None]", "[1, None]"},
    {"complex[]", "[1.5-2j]", "[1.5-2.j]"},
    {"Dict(str, Device)", "{\"a\": \"cpu\"}", "{a: cpu}"},
    {"int[]", "[1, \"a\"]", "!"},
    {"int[]", "[1.5]", "!"},
    {"str[]", "[\"a\", 1]", "!"},
    {"int[]", "[1, 2", "!expected"},
    {"int[]", "(1, 2)", "!expected '['"},
    {"int[]", "[1 2]", "!expected ','"},
    {"(int, str)", "(1, \"a\", 2)", "!the tuple has more elements"},
    {"(int, str)", "(1)", "!the tuple has fewer elements"},
    {"(int, str)", "(1, 2)", "!the constant does not have its type"},
    {"Dict(str, int)", "{\"a\", 1}", "!expected ':'"},
    {"Dict(str, int)", "{\"a\": }", "!"},
    {"Dict(str, int)", "{1: 1}", "!"},
    {"Dict(str, int)", "{\"a\": \"b\"}", "!"},
    {"Dict(str, int)", "[1]", "!expected '{'"},
    {"int", "2.5", "!the constant does not have its type"},
    {"int", "\"a\"", "!"},
    {"str", "1", "!"},
    {"bool[]", "[2, 0]", "[True, False]"},
    {"Device", "\"nowhere\"", "!nowhere"},
    {"Generator", "1", "!"},
    {"int", "9223372036854775808", "!"},
};
static void check_constant(const char *type, const char *constant, const char *want) {
    char text[400], have[400], again[1000];
    opd_value out = opd_value_none();
    (void)snprintf(text, sizeof text, "graph():\n  %%x : %s = prim::Constant[value=%s]()\n  %%y : str = aten::str(%%x)\n  return (%%y)\n",
                   type, constant);
    opd_graph *graph = opd_graph_parse(text), *copy;
    if (*want == '!') {
        if (graph || opd_ok() || !strstr(opd_error_message(), want + 1)) {
            printf("%s = %s: expected an error%s%s, \"%s\"\n", type, constant, want[1] ? " with " : "", want + 1, opd_error_message());
            CHECK(!"no such error");
        }
        opd_error_clear();
        if (graph) { opd_graph_free(graph); }
        return;
    }
    if (!graph || opd_graph_run_values(graph, NULL, 0, &out, 1) != 1) {
        printf("%s = %s: %s\n", type, constant, opd_error_message());
        CHECK(!"it is read and runs");
        opd_error_clear();
        if (graph) { opd_graph_free(graph); }
        return;
    }
    (void)opd_value_print(out, have, sizeof have);
    CHECK_STR(have, want);
    (void)opd_graph_print(graph, again, sizeof again);
    copy = opd_graph_parse(again);
    if (!copy) { printf("%s\n%s\n", again, opd_error_message()); }
    CHECK(copy != NULL && opd_graph_run_values(copy, NULL, 0, &out, 1) == 1);
    (void)opd_value_print(out, have, sizeof have);
    CHECK_STR(have, want);
    if (copy) { opd_graph_free(copy); }
    opd_graph_free(graph);
}
TEST(constants_in_the_text_of_graphs) {
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        OPD_SCOPE { check_constant(constants[i].type, constants[i].constant, constants[i].want); }
    }
}
CHECK_MAIN()
