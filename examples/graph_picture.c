/* Draws the autograd graph of a small network: writes graph.dot and, if Graphviz' `dot` is installed, graph.svg.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/graph_picture.c -o graph_picture -lm && ./graph_picture

   The network has a 3x3 convolution, a normalisation with a residual connection around it, max pooling, a linear layer
   and a loss.  Leaves (the parameters) are blue and have the names that this program gives them.  The loss is green.
   Each box is a node of the graph, with its operator, the sizes of its result, and the bytes that it keeps for the
   backward pass. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__unix__) || defined(__APPLE__)
#include <spawn.h>
#include <sys/wait.h>
extern char **environ;
#endif

enum { CONV, CONV_BIAS, SCALE, SHIFT, LINEAR, LINEAR_BIAS, PARAMETERS };
static const char *const names[] = {"conv.weight", "conv.bias", "norm.weight", "norm.bias", "linear.weight", "linear.bias", "loss"};

static opd_tensor *parameter(opd_ints sizes) {
    return opd_tensor_set_requires_grad(opd_mul_Scalar(opd_randn(sizes, OPD_FLOAT32), OPD_V(0.1)), true);
}

/* x: (N, 1, 8, 8), labels: (N) -> the loss */
static opd_tensor *network(opd_tensor *const *p, opd_tensor *x, opd_tensor *labels) {
    opd_tensor *y, *n;
    const opd_ints one = OPD_INTS(1, 1);          /* stride, padding, dilation */
    y = opd_relu(opd_conv2d_full(x, p[CONV], p[CONV_BIAS], one, one, one, 1));                  /* (N, 4, 8, 8) */
    n = opd_layer_norm_full(y, OPD_INTS(8, 8), p[SCALE], p[SHIFT], 1e-5, true);
    y = opd_max_pool2d(opd_add(y, n), OPD_INTS(2, 2), OPD_INTS(2, 2), OPD_INTS(0));         /* (N, 4, 4, 4) */
    y = opd_linear(opd_flatten(y, 1, -1), p[LINEAR], p[LINEAR_BIAS]);
    return opd_cross_entropy_loss(y, labels);
}

/* Runs dot -Tsvg DOT -o SVG, if dot is installed. */
static void render(const char *dot, const char *svg) {
#if defined(__unix__) || defined(__APPLE__)
    char *arguments[] = {(char *)"dot", (char *)"-Tsvg", (char *)dot, (char *)"-o", (char *)svg, NULL};
    pid_t child;
    int status = -1;
    if (posix_spawnp(&child, "dot", NULL, NULL, arguments, environ) == 0 && waitpid(child, &status, 0) == child && status == 0) {
        printf("wrote %s\n", svg);
        return;
    }
#endif
    printf("no picture in %s: Graphviz is not installed here (dot -Tsvg %s -o %s)\n", svg, dot, svg);
}

static int usage(FILE *to, int status) {
    fprintf(to, "usage: graph_picture [--no-saved] [NAME]\n"
                "  Writes the backward graph of a small network to NAME.dot (graph.dot) in the language of Graphviz, and draws it to\n"
                "  NAME.svg if `dot` is installed.\n"
                "  --no-saved   leaves out the sizes of the saved tensors\n");
    return status;
}

int main(int argc, char **argv) {
    const char *name = "graph";
    char dot[300], svg[300], *text = NULL;
    opd_graph_options options = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) { return usage(stdout, 0); }
        else if (strcmp(argv[i], "--no-saved") == 0) { options.no_saved = true; }
        else if (argv[i][0] != '-' && strlen(argv[i]) < 250) { name = argv[i]; }
        else { fprintf(stderr, "graph_picture: '%s' is not understood\n", argv[i]); return usage(stderr, 2); }
    }
    snprintf(dot, sizeof dot, "%s.dot", name);
    snprintf(svg, sizeof svg, "%s.svg", name);
    OPD_SCOPE {
        opd_tensor *named[PARAMETERS + 1] = {
            parameter(OPD_INTS(4, 1, 3, 3)), parameter(OPD_INTS(4)), parameter(OPD_INTS(8, 8)), parameter(OPD_INTS(8, 8)),
            parameter(OPD_INTS(10, 64)), parameter(OPD_INTS(10)),
        };
        opd_tensor *x = opd_randn(OPD_INTS(16, 1, 8, 8), OPD_FLOAT32), *labels = opd_randint(10, OPD_INTS(16), OPD_INT64);
        opd_tensor *loss = named[PARAMETERS] = network(named, x, labels);
        options.tensors = named;
        options.names = names;
        options.nnames = PARAMETERS + 1;
        options.title = "a small network, 16 images";
        size_t length = opd_graph_dot(&loss, 1, &options, NULL, 0);
        text = length ? malloc(length + 1) : NULL;
        if (text) { opd_graph_dot(&loss, 1, &options, text, length + 1); }
        else if (opd_ok()) { opd_fail(OPD_ERROR_MEMORY, "there is no memory for the text"); }
    }
    if (opd_ok()) {
        FILE *f = fopen(dot, "w");
        if (!f || fputs(text, f) < 0 || fclose(f)) { opd_fail(OPD_ERROR_USER, "%s cannot be written", dot); }
        else { printf("wrote %s\n", dot); render(dot, svg); }
    }
    free(text);
    return opd_finish();
}
