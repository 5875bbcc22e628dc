/* Traced graphs with conditions and loops that are saved as exported programs.  The library's reader and PyTorch (if
   there is one) must load them, and compute what the functions compute, also for other inputs. */
#include "../../opdispatch.h"
#include "../traced_control.h"
#include "../python.h"

#include <sys/stat.h>
#include <unistd.h>

static opd_tensor *outside;      /* a constant of the graphs */
/* A map that does not use its slices. */
BODY(one_number) { UNUSED(); out[0] = opd_exp(in[1]); DONE(1); }
BODY(repeats) { UNUSED(); return opd_map(one_number, NULL, in, 1, in + 1, 1, out, 1); }
/* Results of blocks that are inputs, views of inputs, constants, and twice the same. */
BODY(odd_results) {
    UNUSED();
    out[0] = in[0];
    out[1] = opd_view(in[0], OPD_INTS(1));
    out[2] = opd_mul(outside, outside);
    out[3] = opd_mul(in[0], in[0]);
    out[4] = out[3];
    DONE(5);
}
BODY(other_results) {
    UNUSED();
    out[0] = opd_exp(in[0]);
    out[1] = opd_view(out[0], OPD_INTS(1));
    out[2] = outside;
    out[3] = in[0];
    out[4] = in[0];
    DONE(5);
}
BODY(odd) {
    UNUSED();
    return opd_cond(opd_sum(opd_sub(in[0], in[1])), odd_results, other_results, NULL, in, 1, out, 5);
}
BODY(odd_step) {
    UNUSED();
    out[0] = in[0];
    out[1] = in[1];
    out[2] = in[2];
    out[3] = outside;
    DONE(4);
}
BODY(odd_scan) {
    UNUSED();
    const opd_scan_options options = {0, true};
    return opd_scan(odd_step, NULL, in, 1, in + 1, 1, in + 2, 1, &options, out, 4);
}
/* A while that counts, with a condition of one element and an int dtype, and a cond in its body. */
BODY(left) { UNUSED(); out[0] = opd_unsqueeze(in[0], 0); DONE(1); }
BODY(counts_down) {
    UNUSED();
    out[0] = opd_sub_Scalar(in[0], OPD_V(1));
    return opd_cond(opd_gt_Scalar(in[1], OPD_V(20)), same, doubled, NULL, in + 1, 1, out + 1, 1) == 1 ? 2 : -1;
}
BODY(until) {
    UNUSED();
    opd_tensor *carried[2];
    carried[0] = opd_full(opd_ints_of(NULL, 0), OPD_V(4), OPD_INT64);
    carried[1] = opd_add(in[0], in[1]);
    return opd_while(left, counts_down, NULL, carried, 2, NONE, out, 2);
}
/* The sum of a function with a map over the columns of a matrix, and parameters. */
BODY(weighted) { UNUSED(); out[0] = opd_tanh(opd_mv(in[1], in[0])); DONE(1); }
BODY(layers) { UNUSED(); return opd_map(weighted, NULL, in + 1, 1, in, 1, out, 1); }

static const char *folder(void) {
    static char path[300];
    const char *const temporary = getenv("TMPDIR");
    (void)snprintf(path, sizeof path, "%s/opd_control_%d", temporary ? temporary : "/tmp", (int)getpid());
    return path;
}
static const char *file_of(const char *name, const char *end) {
    static char path[500];
    (void)snprintf(path, sizeof path, "%s/%s%s", folder(), name, end);
    return path;
}
/* Runs the saved program on tensors, and compares with what the graph and the function compute. */
static void same_as(const opd_program *program, const opd_graph *graph, const char *name, opd_tensor *const *in, int n,
                    opd_tensor *const *want, int count) {
    opd_value inputs[4], got[8];
    opd_tensor *run[8];
    for (int i = 0; i < n; i++) { inputs[i] = opd_value_tensor(in[i]); }
    CHECK_INT(opd_program_run(program, inputs, n, got, 8), count);
    CHECK_INT(opd_graph_run(graph, in, n, run, 8), count);
    for (int i = 0; i < count && opd_ok(); i++) {
        const bool equal = got[i].tag == OPD_TAG_TENSOR && opd_equal(got[i].u.t, run[i]) &&
            opd_allclose(got[i].u.t, want[i]);
        CHECK(equal);
        if (!equal) { printf("%s: output %d\n", name, i); }
    }
    CHECK_OK();
}
/* Saves `fn`, traced with `in`.  The saved program must call `operators` ("cond scan"), and compute what `fn` computes
   for `in` and for `others`.  Writes the arrays for PyTorch. */
static void saves(const char *name, const char *operators, opd_transform_fn fn, opd_tensor *const *in,
                  opd_tensor *const *others, int n) {
    OPD_SCOPED;
    static const char *const keys[] = {"in0", "in1", "in2"}, *const results[] = {"out0", "out1", "out2", "out3", "out4"};
    opd_tensor *want[8], *arrays[8];
    const char *words[8], *called;
    char found[200] = "";
    opd_graph *const graph = opd_graph_trace(fn, NULL, in, n, NULL);
    CHECK_INT(opd_program_save(graph, NULL, file_of(name, ".pt2")), 0);
    if (!opd_ok()) { printf("%s\n", name); }
    CHECK_OK();
    opd_program *const program = opd_program_load(file_of(name, ".pt2"), NULL);
    if (!program) { printf("%s\n", name); }
    CHECK_OK();
    for (int i = 0; program && (called = opd_program_operator(program, i, NULL, NULL)) != NULL; i++) {
        if (!strstr(called, "::") && strlen(found) + strlen(called) + 2 < sizeof found) {
            (void)snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", *found ? " " : "", called);
        }
    }
    CHECK_STR(found, operators);
    for (int k = 0; k < 2 && program; k++) {
        opd_tensor *const *const given = k ? in : others;
        const int count = fn(NULL, given, n, want);
        CHECK(count > 0 && count <= 5);
        same_as(program, graph, name, given, n, want, count);
        for (int i = 0; i < n + count; i++) {
            arrays[i] = i < n ? given[i] : opd_contiguous(opd_detach(want[i - n]));
            words[i] = i < n ? keys[i] : results[i - n];
        }
        if (!k) { CHECK_INT(opd_npz_save(file_of(name, ".npz"), words, opd_tensors_of(arrays, n + count)), 0); }
    }
    opd_program_free(program);
    opd_graph_free(graph);
}
TEST(conditions_and_loops_are_saved) {
    (void)mkdir(folder(), 0700);
    OPD_SCOPE {
        outside = number(1.25);
        opd_tensor *const a[] = {number(3), number(100)}, *const b[] = {number(0.5), number(0.4)};
        opd_tensor *const c[] = {number(0.1), numbers(x_values, 4), number(0.7)};
        opd_tensor *const d[] = {number(-0.3), numbers(y_values, 4), number(0.9)};
        opd_tensor *const rows = opd_reshape(c[1], OPD_INTS(2, 2)), *const more = opd_reshape(d[1], OPD_INTS(2, 2));
        opd_tensor *const f[] = {c[0], rows, opd_select(more, 0, 0)}, *const g[] = {c[0], more, opd_select(rows, 0, 1)};
        opd_tensor *const h[] = {opd_randn(OPD_INTS(3, 2), OPD_FLOAT32), opd_randn(OPD_INTS(5, 2), OPD_FLOAT32)};
        const double u[] = {3, 20, 2, 200}, v[] = {300, 200, 1000, 101};
        opd_tensor *const j[] = {numbers(u, 4), number(100)}, *const k[] = {numbers(v, 4), number(0.9)};
        opd_tensor *const l[] = {numbers(x_values, 2), rows, number(0.7)}, *const m[] = {numbers(y_values, 2), more, number(0.9)};
        saves("cond", "cond", chooses, a, b, 2);
        saves("while", "while_loop", grows, a, b, 2);
        saves("scan", "scan", recurrent, c, d, 3);
        saves("counter", "scan", counts, c, d, 2);
        saves("nested", "cond scan", nested, c, d, 3);
        saves("map", "map_impl", maps, f, g, 3);
        saves("repeats", "map_impl", repeats, c + 1, d + 1, 2);
        saves("odd", "cond", odd, a, a, 1 + 1);
        saves("odd_again", "cond", odd, b, a, 2);
        saves("odd_scan", "scan", odd_scan, c, d, 3);
        saves("until", "cond while_loop", until, a, b, 2);
        saves("layers", "map_impl", layers, h, h, 2);
        saves("cond_gradient", "cond", chooses_by, a, b, 2);
        saves("scan_gradient", "scan", recurrent_by, c, d, 3);
        saves("scan_gradients", "scan", recurrent_twice, c, d, 3);
        saves("counter_gradient", "scan", counts_by, c, d, 2);
        saves("map_gradient", "map_impl scan", maps_by, f, g, 3);
        saves("cond_along", "cond", chooses_along, a, b, 2);
        saves("while_along", "while_loop", grows_along, a, b, 2);
        saves("scan_along", "scan", recurrent_along, c, d, 3);
        saves("cond_all", "cond", chooses_all, j, k, 2);
        saves("while_all", "while_loop", grows_all, j, k, 2);
        saves("scan_all", "scan", recurrent_all, l, m, 3);
        saves("scan_all_gradient", "scan", recurrent_all_by, l, m, 3);
    }
    if (python_checks_programs(folder(), "checked: 24 programs") == 77) { SKIP_WITHOUT_PYTHON("torch 2.8 or later"); }
}

/* Returns the path of a file that a test writes and removes. */
static const char *own_file(void) {
    static char path[400];
    (void)snprintf(path, sizeof path, "%s.pt2", folder());
    return path;
}
/* Parses a graph of one float64 tensor of 3 elements, which cannot be saved.  The error must contain `part`, and no
   file may be written. */
static void refuses(const char *text, const char *part) {
    opd_graph *const graph = opd_graph_parse(text);
    CHECK_OK();
    CHECK_INT(opd_program_save(graph, NULL, own_file()), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, part);
    CHECK(access(own_file(), F_OK) != 0);
    opd_graph_free(graph);
}
#define X3 "Double(3, strides=[1], requires_grad=0, device=cpu)"
#define HEAD "graph(%x : " X3 "):\n  %0 : int = prim::Constant[value=0]()\n  %1 : int = aten::size(%x, %0)\n" \
    "  %2 : bool = prim::Constant[value=1]()\n"
TEST(graphs_that_cannot_be_saved) {
    refuses(HEAD "  %y : " X3 " = prim::Loop(%1, %2, %x)\n    block0(%i : int, %z : Tensor):\n"
            "      %3 : int = prim::Constant[value=1]()\n      %4 : " X3 " = aten::add(%z, %i, %3)\n"
            "      -> (%2, %4)\n  return (%y)\n", "prim::Loop (%y) cannot be saved: it uses the number of the round");
    refuses(HEAD "  %l : Tensor[] = prim::ListConstruct(%x)\n  %y : " X3 " = prim::Loop(%1, %2, %x)\n"
            "    block0(%i : int, %z : Tensor):\n      %m : Tensor[] = aten::append(%l, %z)\n"
            "      -> (%2, %z)\n  return (%y)\n", "aten::append (%m) cannot be saved: the list is not an empty list");
    refuses(HEAD "  %l : Tensor[] = prim::ListConstruct()\n  %y : " X3 " = prim::Loop(%1, %2, %x)\n"
            "    block0(%i : int, %z : Tensor):\n      %m : Tensor[] = aten::append(%l, %z)\n"
            "      -> (%2, %z)\n  %s : Double(9, strides=[1], requires_grad=0, device=cpu) = aten::cat(%l, %0)\n"
            "  return (%s)\n", "aten::cat (%s) cannot be saved: it uses a list of a loop in another way");
    refuses(HEAD "  %l : Tensor[] = prim::ListConstruct(%x)\n  %y : Tensor[] = aten::append(%l, %x)\n"
            "  %s : Double(6, strides=[1], requires_grad=0, device=cpu) = aten::cat(%l, %0)\n  return (%s)\n",
            "aten::append (%y) cannot be saved: it is neither an operator nor");
    refuses(HEAD "  %y : " X3 " = aten::add(%x, %1, %1)\n  return (%y)\n",
            "aten::add (%y) cannot be saved: an argument is computed, but not a tensor");
    refuses(HEAD "  %b : bool = aten::gt(%1, %0)\n  %y : " X3 " = prim::If(%b)\n    block0():\n      -> (%x)\n"
            "    block1():\n      -> (%x)\n  return (%y)\n", "aten::gt (%b) cannot be saved: it is neither");
    refuses(HEAD "  %l : Tensor[] = prim::ListConstruct(%x, %x)\n  %y : " X3 ", %z : " X3 " = prim::ListUnpack(%l)\n"
            "  return (%y)\n", "prim::ListUnpack (%y) cannot be saved: it is neither");
    OPD_SCOPE {
        opd_tensor *const a[] = {number(3), number(100)}, *const c[] = {number(0.1), numbers(x_values, 4), number(0.7)};
        opd_tensor *const d[] = {c[0], numbers(x_values, 2), c[2]};
        opd_graph *graph = opd_graph_trace(grows_by, NULL, a, 2, NULL), *other;
        CHECK_INT(opd_program_save(graph, NULL, own_file()), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the derivative of opd_while needs such results");
        opd_graph_free(graph);
        graph = opd_graph_trace(recurrent, NULL, c, 3, NULL);
        other = opd_graph_trace(recurrent, NULL, d, 3, NULL);
        CHECK_INT(opd_program_save_open(graph, other, NULL, own_file()), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "sizes of graphs with conditions or loops cannot be open");
        CHECK(access(own_file(), F_OK) != 0);
        opd_graph_free(graph);
        opd_graph_free(other);
    }
}
/* Loops with a limited number of rounds and a condition, and with slices of the first and the last. */
TEST(parsed_loops_are_saved) {
    static const char *const texts[] = {
        HEAD "  %n : int = prim::Constant[value=2]()\n  %y : " X3 " = prim::Loop(%n, %2, %x)\n"
        "    block0(%i : int, %z : Tensor):\n      %4 : " X3 " = aten::mul(%z, %x)\n"
        "      %s : Double(requires_grad=0, device=cpu) = aten::sum(%4, %none)\n      %b : bool = aten::Bool(%s)\n"
        "      -> (%b, %4)\n  return (%y)\n",
        HEAD "  %y : " X3 " = prim::Loop(%1, %2, %x)\n    block0(%i : int, %z : Tensor):\n"
        "      %e : Double(requires_grad=0, device=cpu) = aten::select(%x, %0, %i)\n"
        "      %4 : " X3 " = aten::mul(%z, %e)\n      -> (%2, %4)\n  return (%y)\n"};
    for (int k = 0; k < 2; k++) {
        OPD_SCOPE {
            char text[2000];
            opd_tensor *const x = numbers(x_values, 3), *want = NULL;
            opd_value input = opd_value_tensor(x), got;
            const char *const at = strstr(texts[k], "  %1 : int");
            (void)snprintf(text, sizeof text, "%.*s  %%none : NoneType = prim::Constant()\n%s",
                           (int)(at - texts[k]), texts[k], at);
            opd_graph *const graph = opd_graph_parse(text);
            CHECK_OK();
            CHECK_INT(opd_graph_run(graph, &x, 1, &want, 1), 1);
            CHECK_INT(opd_program_save(graph, NULL, own_file()), 0);
            opd_program *const program = opd_program_load(own_file(), NULL);
            CHECK_OK();
            CHECK_INT(opd_program_run(program, &input, 1, &got, 1), 1);
            if (opd_ok()) { CHECK(opd_equal(got.u.t, want)); }
            opd_program_free(program);
            opd_graph_free(graph);
        }
        CHECK_OK();
        remove(own_file());
    }
}
static int save_again(void *graph) {
    const int rc = opd_program_save((const opd_graph *)graph, NULL, own_file());
    CHECK(rc == 0 || access(own_file(), F_OK) != 0);
    remove(own_file());
    return rc;
}
TEST(allocations_of_saving_fail) {
    opd_graph *graphs[2];
    OPD_SCOPE {
        opd_tensor *const a[] = {number(3), number(100)}, *const c[] = {number(0.1), numbers(x_values, 4), number(0.7)};
        graphs[0] = opd_graph_trace(nested, NULL, c, 3, NULL);
        graphs[1] = opd_graph_trace(until, NULL, a, 2, NULL);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(check_allocations_at(save_again, graphs[i], i ? "while_loop" : "scan", 300, false, __FILE__, __LINE__) > 20);
        opd_graph_free(graphs[i]);
    }
}

CHECK_MAIN()
