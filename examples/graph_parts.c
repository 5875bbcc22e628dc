/* Graphs that a program reads, rewrites and divides.  The model of examples/data/four_digits.pt2 is loaded.  The program
   lists what it calls, puts one operator of its own at the place of each linear layer with a relu, and lets a compiler of
   its own compute the convolutions.  All forms give the same numbers.
   cc -O2 examples/graph_parts.c -o graph_parts -lm && ./graph_parts examples/data/four_digits.pt2
   ci: examples/data/four_digits.pt2 */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

//-- reading -----------------------------------------------------------------------------------------------------------

static void list_calls(const opd_graph *graph) {
    for (opd_graph_node *node = opd_graph_first(graph); node; node = opd_graph_next(node)) {
        char name[80], weight[80] = "";
        if (opd_graph_node_kind(node) != OPD_GRAPH_OP) { continue; }
        opd_graph_node_name(node, name, sizeof name);
        if (opd_graph_node_is(node, "aten::conv2d") || opd_graph_node_is(node, "aten::linear")) {
            opd_graph_value_name(opd_graph_node_arg(node, "weight"), weight, sizeof weight);
        }
        printf("%-20s %s\n", name, weight);
    }
}

//-- rewriting: linear and relu become one operator --------------------------------------------------------------------

static int linear_relu(opd_call *call) {
    return opd_return_tensor(call, opd_relu(opd_linear(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                                       opd_arg_tensor(call, 2))));
}
OPD_LIBRARY(mine, lib) {
    opd_define(lib, &(opd_op_desc){
        .schema = "linear_relu(Tensor x, Tensor w, Tensor b) -> Tensor", .composite = linear_relu});
}
static int two_calls(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_relu(opd_linear(in[0], in[1], in[2]));
    return 1;
}
static int one_call(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static opd_op *op;
    (void)user, (void)n;
    out[0] = OPD_CALL(OPD_OP(&op, "mine::linear_relu"), in[0], in[1], in[2]);
    return 1;
}
static int fuse(opd_graph *graph) {
    int count = -1;
    OPD_SCOPE {
        opd_tensor *example[] = {opd_zeros(OPD_INTS(1, 2), OPD_FLOAT32), opd_zeros(OPD_INTS(3, 2), OPD_FLOAT32), opd_zeros(OPD_INTS(3), OPD_FLOAT32)};
        opd_graph *pattern = opd_graph_trace(two_calls, NULL, example, 3, NULL);
        opd_graph *fused = opd_graph_trace(one_call, NULL, example, 3, NULL);
        count = opd_graph_rewrite(graph, pattern, fused, NULL);
        opd_graph_free(pattern);
        opd_graph_free(fused);
    }
    return count;
}

//-- a compiler for parts ----------------------------------------------------------------------------------------------

/* This compiler takes convolutions and what stands between them.  A real one would make code for its chip from the nodes
   of the part; here, the compiled function runs the part. */
static bool supported(void *user, const opd_graph_node *node) {
    (void)user;
    return opd_graph_node_is(node, "aten::conv2d") || opd_graph_node_is(node, "aten::relu") ||
        opd_graph_node_is(node, "aten::max_pool2d");
}
static int run_part(void *part, opd_tensor *const *inputs, int n, opd_tensor **outputs) {
    return opd_graph_run((const opd_graph *)part, inputs, n, outputs, OPD_TRANSFORM_OUTPUTS);
}
static int compile_part(void *user, const opd_graph *part, opd_part_function *function) {
    (void)user;
    printf("a part with %d convolutions, %d inputs and %d outputs\n", opd_graph_count(part, "aten::conv2d"),
           opd_graph_ninputs(part), opd_graph_noutputs(part));
    function->name = "chip::part";
    function->run = run_part;
    function->user = (void *)(uintptr_t)part;
    return 0;
}

static opd_tensor *run(opd_program *program, opd_tensor *x) {
    opd_value in = opd_value_tensor(x), out;
    return opd_program_run(program, &in, 1, &out, 1) == 1 ? out.u.t : NULL;
}
int main(int argc, char **argv) {
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        printf("usage: graph_parts [examples/data/four_digits.pt2]\n");
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    opd_part_compiler compiler = {.supported = supported, .compile = compile_part, .least = 2};
    opd_program *program = opd_program_load(argc > 1 ? argv[1] : "examples/data/four_digits.pt2", NULL);
    OPD_NO_GRAD OPD_SCOPE {
        opd_manual_seed(1);
        opd_tensor *x = opd_rand(OPD_INTS(2, 1, 8, 8), OPD_FLOAT32), *want = run(program, x);
        list_calls(opd_program_graph(program));
        opd_graph *graph = opd_graph_copy(opd_program_graph(program));
        printf("%d linear layers with a relu\n", fuse(graph));
        opd_program_set_graph(program, graph);
        opd_tensor *fused = run(program, x);
        opd_compiled *compiled = opd_program_compile(program, NULL);
        opd_compiled_delegate(compiled, &compiler);
        opd_value in = opd_value_tensor(x), out = opd_value_none();
        opd_compiled_run(compiled, &in, 1, &out, 1);
        if (opd_ok()) {
            printf("the same numbers: %s\n", opd_equal(fused, want) && opd_equal(out.u.t, want) ? "yes" : "no");
        }
        opd_compiled_free(compiled);
    }
    opd_program_free(program);
    return opd_finish();
}
