/* Graphs with blocks, and values of graphs that are not tensors: strings, lists, dicts, tuples, objects. */
#include "../../opdispatch.h"
#include "../check.h"

static bool prints(opd_value value, const char *want) {
    char text[500];
    (void)opd_value_print(value, text, sizeof text);
    if (strcmp(text, want) != 0) { fprintf(stderr, "printed: %s\n", text); }
    return strcmp(text, want) == 0;
}

TEST(cells_are_made_read_and_printed) {
    OPD_SCOPE {
        opd_value list = opd_list_new(OPD_TAG_INTS), dict = opd_dict_new(), parts[3], got;
        for (int i = 0; i < 20; i++) { CHECK_INT(opd_list_append(list, opd_value_int(i * i)), 0); }
        CHECK_INT(opd_list_count(list), 20);
        CHECK_INT(opd_list_at(list, -1).u.i, 361);
        CHECK(opd_value_cell(list) == OPD_CELL_LIST);
        CHECK_INT(opd_list_append(list, opd_value_str("x")), -1);
        opd_error_clear();
        for (int i = 0; i < 100; i++) {
            char key[20];
            (void)snprintf(key, sizeof key, "k%d", i);
            CHECK_INT(opd_dict_set(dict, opd_value_str(key), opd_value_int(i)), 0);
            CHECK_INT(opd_dict_set(dict, opd_string_new(key, -1), opd_value_int(i + 1)), 0);
        }
        CHECK_INT(opd_list_count(dict), 100);
        CHECK_INT(opd_dict_get(dict, opd_value_str("k77"), &got), 1);
        CHECK_INT(got.u.i, 78);
        CHECK_INT(opd_dict_get(dict, opd_value_str("k100"), &got), 0);
        got = opd_value_str("a");
        CHECK_STR(opd_string_text(&got, NULL), "a");
        parts[0] = opd_string_new("text", -1);
        parts[1] = opd_value_double(0.1);
        parts[2] = opd_dict_new();
        CHECK_INT(opd_dict_set(parts[2], opd_value_int(3), opd_value_of_ints(OPD_INTS(1, 2))), 0);
        CHECK(prints(opd_tuple_new(parts, 3), "(text, 0.10000000000000001, {3: [1, 2]})"));
        CHECK(prints(opd_tuple_new(parts, 1), "(text,)"));
        CHECK(prints(opd_value_double(-0.0), "0."));
    }
    CHECK_OK();
}

//-- graphs ------------------------------------------------------------------------------------------------------------

static const char *const newton =
    "graph(%x.1 : Tensor,\n"
    "      %tol.1 : float):\n"
    "  %3 : bool = prim::Constant[value=0]()\n"
    "  %4 : bool = prim::Constant[value=1]() # :0:0\n"
    "  %5 : NoneType = prim::Constant()\n"
    "  %it.1 : int = prim::Constant[value=0]() # dots.py:61:37\n"
    "  %7 : int = prim::Constant[value=9223372036854775807]() # dots.py:62:8\n"
    "  %8 : float = prim::Constant[value=0.5]() # dots.py:63:16\n"
    "  %9 : int = prim::Constant[value=1]() # dots.py:63:41\n"
    "  %10 : int = prim::Constant[value=50]() # dots.py:62:59\n"
    "  %y.1 : Tensor = aten::ones_like(%x.1, %5, %5, %5, %5, %5) # dots.py:61:12\n"
    "  %y0 : Tensor, %it : int = prim::Loop(%7, %4, %y.1, %it.1) # dots.py:62:8\n"
    "    block0(%21 : int, %y0.9 : Tensor, %it.9 : int):\n"
    "      %24 : Tensor = aten::div(%x.1, %y0.9) # dots.py:63:27\n"
    "      %25 : Tensor = aten::add(%y0.9, %24, %9) # dots.py:63:23\n"
    "      %y1.1 : Tensor = aten::mul(%25, %8)\n"
    "      %it0.1 : int = aten::add(%it.9, %9) # dots.py:63:35\n"
    "      %28 : Tensor = aten::mul(%y1.1, %y1.1) # dots.py:62:20\n"
    "      %29 : Tensor = aten::sub(%28, %x.1, %9) # dots.py:62:20\n"
    "      %30 : Tensor = aten::abs(%29) # dots.py:62:20\n"
    "      %31 : Tensor = aten::max(%30) # dots.py:62:20\n"
    "      %32 : Tensor = aten::gt(%31, %tol.1) # dots.py:62:20\n"
    "      %33 : bool = aten::Bool(%32) # dots.py:62:14\n"
    "      %34 : bool = prim::If(%33) # dots.py:62:14\n"
    "        block0():\n"
    "          %35 : bool = aten::lt(%it0.1, %10) # dots.py:62:54\n"
    "          -> (%35)\n"
    "        block1():\n"
    "          -> (%3)\n"
    "      -> (%34, %y1.1, %it0.1)\n"
    "  %36 : (Tensor, int) = prim::TupleConstruct(%y0, %it)\n"
    "  return (%36)\n";

/* Lists that grow in a loop, a dict, texts, and an exception. */
static const char *const words =
    "graph(%n.1 : int,\n"
    "      %bad.1 : bool):\n"
    "  %2 : bool = prim::Constant[value=1]()\n"
    "  %3 : str = prim::Constant[value=\"k{}\"]()\n"
    "  %4 : int = prim::Constant[value=2]()\n"
    "  %5 : str = prim::Constant[value=\"bad mode\"]()\n"
    "  %6 : str = prim::Constant[value=\"builtins.ValueError\"]()\n"
    "  %d.1 : Dict(str, int[]) = prim::DictConstruct()\n"
    "   = prim::Loop(%n.1, %2)\n"
    "    block0(%i.1 : int):\n"
    "      %9 : str = aten::format(%3, %i.1)\n"
    "      %10 : int[] = prim::ListConstruct(%i.1)\n"
    "      %11 : int = aten::remainder(%i.1, %4)\n"
    "      %12 : bool = aten::Bool(%11)\n"
    "      %l : int[] = prim::If(%12)\n"
    "        block0():\n"
    "          %14 : int[] = aten::append(%10, %n.1)\n"
    "          -> (%14)\n"
    "        block1():\n"
    "          -> (%10)\n"
    "       = aten::_set_item(%d.1, %9, %l)\n"
    "      -> (%2)\n"
    "   = prim::If(%bad.1)\n"
    "    block0():\n"
    "       = prim::RaiseException(%5, %6) # words.py:9:4\n"
    "      -> ()\n"
    "    block1():\n"
    "      -> ()\n"
    "  %15 : str[] = aten::keys(%d.1)\n"
    "  %16 : (Dict(str, int[]), str[]) = prim::TupleConstruct(%d.1, %15)\n"
    "  return (%16)\n";

static opd_graph *same_text(const char *text) {
    char have[8000];
    opd_graph *graph = opd_graph_parse(text);
    CHECK_OK();
    (void)opd_graph_print(graph, have, sizeof have);
    CHECK_STR(have, text);
    return graph;
}

TEST(loops_and_ifs_run_and_print) {
    opd_graph *graph = same_text(newton);
    OPD_SCOPE {
        float numbers[] = {1, 4, 9};
        opd_value in[2], out;
        in[0] = opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(3), OPD_FLOAT32));
        in[1] = opd_value_double(1e-4);
        for (int i = 0; i < 2; i++) {
            CHECK_INT(opd_graph_run_values(graph, in, 2, &out, 1), 1);
            CHECK_OK();
            CHECK_INT(opd_list_at(out, 1).u.i, 5);
            CHECK_NEAR(opd_data_f32(opd_list_at(out, 0).u.t)[2], 3, 1e-5);
        }
    }
    opd_graph_free(graph);
}

TEST(lists_dicts_and_texts_in_blocks) {
    opd_graph *graph = same_text(words);
    OPD_SCOPE {
        opd_value in[2], out;
        in[0] = opd_value_int(3);
        in[1] = opd_value_bool(false);
        CHECK_INT(opd_graph_run_values(graph, in, 2, &out, 1), 1);
        CHECK(prints(out, "({k0: [0], k1: [1, 3], k2: [2]}, [k0, k1, k2])"));
        in[1] = opd_value_bool(true);
        CHECK_INT(opd_graph_run_values(graph, in, 2, &out, 1), -1);
        CHECK_ERROR(OPD_ERROR_USER, "ValueError: bad mode [in the graph's node prim::RaiseException # words.py:9:4]");
        in[0] = opd_value_str("three");
        CHECK_INT(opd_graph_run_values(graph, in, 2, &out, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected a value of type 'int' for argument 'n.1'");
    }
    opd_graph_free(graph);
}

/* y = x; for i in range(n): y = y * x if i != 1 else y + x.  For x = 3, n = 3: ((x * x) + x) * x. */
TEST(gradients_pass_through_blocks) {
    opd_graph *graph = same_text(
        "graph(%x.1 : Tensor,\n"
        "      %n.1 : int):\n"
        "  %2 : bool = prim::Constant[value=1]()\n"
        "  %3 : int = prim::Constant[value=1]()\n"
        "  %y : Tensor = prim::Loop(%n.1, %2, %x.1)\n"
        "    block0(%i.1 : int, %y.1 : Tensor):\n"
        "      %7 : bool = aten::eq(%i.1, %3)\n"
        "      %8 : Tensor = prim::If(%7)\n"
        "        block0():\n"
        "          %9 : Tensor = aten::add(%y.1, %x.1, %3)\n"
        "          -> (%9)\n"
        "        block1():\n"
        "          %10 : Tensor = aten::mul(%y.1, %x.1)\n"
        "          -> (%10)\n"
        "      -> (%2, %8)\n"
        "  return (%y)\n");
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_set_requires_grad(opd_full(OPD_INTS(1), OPD_V(3), OPD_FLOAT32), true);
        opd_value in[2], out;
        in[0] = opd_value_tensor(x);
        in[1] = opd_value_int(3);
        CHECK_INT(opd_graph_run_values(graph, in, 2, &out, 1), 1);
        CHECK_NEAR(opd_item_f64(out.u.t), 36, 1e-6);
        CHECK_INT(opd_backward(out.u.t), 0);
        CHECK_NEAR(opd_item_f64(opd_tensor_grad(x)), 3 * 9 + 2 * 3, 1e-6);
        CHECK_OK();
        CHECK_INT(opd_graph_dce(graph), 0);
        CHECK_INT(opd_graph_cse(graph), 0);
        CHECK_INT(opd_graph_fold(graph), 0);
        CHECK_INT(opd_graph_run_values(graph, in, 2, &out, 1), 1);
        CHECK_NEAR(opd_item_f64(out.u.t), 36, 1e-6);
    }
    opd_graph_free(graph);
}

TEST(blocks_in_files) {
    char path[100], text[8000], again[8000];
    (void)snprintf(path, sizeof path, "/tmp/opdispatch_blocks_%p.graph", (void *)text);
    const char *const texts[] = {newton, words};
    for (int i = 0; i < 2; i++) {
        opd_graph *graph = opd_graph_parse(texts[i]), *loaded;
        CHECK_INT(opd_graph_save(graph, path), 0);
        loaded = opd_graph_load(path);
        CHECK_OK();
        (void)opd_graph_print(graph, text, sizeof text);
        (void)opd_graph_print(loaded, again, sizeof again);
        CHECK_STR(again, text);
        opd_graph_free(graph);
        opd_graph_free(loaded);
    }
    (void)remove(path);
}

/* A damaged text gives an error, or another graph, which runs or fails. */
TEST(damaged_texts) {
    const char *const texts[] = {newton, words};
    char text[4000];
    uint32_t random = 7;
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(texts[i]);
        for (size_t cut = 0; cut < length; cut += 3) {
            (void)snprintf(text, sizeof text, "%.*s", (int)cut, texts[i]);
            opd_graph_free(opd_graph_parse(text));
            opd_error_clear();
        }
        for (int k = 0; k < 600; k++) {
            (void)snprintf(text, sizeof text, "%s", texts[i]);
            for (int times = 0; times < 2; times++) {
                random = random * 1664525u + 1013904223u;
                text[(random >> 8) % length] = texts[i][(random >> 4) % length];
            }
            OPD_SCOPE {
                opd_graph *graph = opd_graph_parse(text);
                opd_value in[2], out[4];
                in[0] = i ? opd_value_int(3) : opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32));
                in[1] = i ? opd_value_bool(false) : opd_value_double(0.01);
                if (graph && opd_graph_ninputs(graph) == 2 && !strstr(text, "prim::Loop(%7")) {
                    (void)opd_graph_run_values(graph, in, 2, out, 4);
                }
                opd_error_clear();
                opd_graph_free(graph);
            }
        }
    }
    CHECK_OK();
}

/* Reads a text, runs it, saves nothing. */
static int attempt(void *arg) {
    opd_graph *graph = opd_graph_parse((const char *)arg);
    opd_value in[2], out;
    const bool first = arg == (const void *)newton;
    in[0] = first ? opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)) : opd_value_int(3);
    in[1] = first ? opd_value_double(0.01) : opd_value_bool(false);
    const int rc = graph && opd_ok() ? opd_graph_run_values(graph, in, 2, &out, 1) : -1;
    opd_graph_free(graph);
    return rc;
}
TEST_KEEPS(allocations_that_fail) {
    CHECK(check_allocations_at(attempt, (void *)(uintptr_t)newton, "newton", 300, false, __FILE__, __LINE__) > 30);
    CHECK(check_allocations_at(attempt, (void *)(uintptr_t)words, "words", 300, false, __FILE__, __LINE__) > 30);
}
CHECK_MAIN()
