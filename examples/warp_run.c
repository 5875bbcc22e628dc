/* Runs the graph that examples/warp_perspective.cpp has saved.  A plug-in, compiled from the same file, has its
   operator.
   cc -O2 examples/warp_run.c -o warp_run -lm
   ci: $tmp/warp.opd $tmp/warp.so

   Run it with the graph and the plug-in in the same folder: ./warp_run warp.opd warp.so
   This program contains no code for OpenCV or for the operator. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int right = 0;
    if (argc != 3 || argv[1][0] == '-') {
        const bool asked = argc < 2 || (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        fputs("usage: warp_run warp.opd warp.so\n", asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    OPD_SCOPE {
        const float matrix[] = {-1, 0, 4,  0, -1, 4,  0, 0, 1};             /* half a turn of 5 x 5 */
        opd_tensor *image = opd_reshape(opd_arange(OPD_V(25), OPD_FLOAT32), OPD_INTS(5, 5)), *out;
        opd_tensor *in[] = {image, opd_tensor_from(matrix, OPD_INTS(3, 3), OPD_FLOAT32)};
        opd_graph *graph = opd_graph_load(argv[1]);
        right += !graph;
        printf("without the plug-in: %s\n", graph ? "?" : opd_error_message());
        opd_error_clear();
        opd_graph_free(graph);

        opd_plugin *plugin = opd_plugin_load(argv[2]);
        graph = opd_graph_load(argv[1]);
        if (graph && opd_graph_run(graph, in, 2, &out, 1) == 1) {                /* all ones */
            opd_print(out);
            right += opd_item_f64(opd_min(out)) > 0.999 && opd_item_f64(opd_max(out)) < 1.001;
        }
        in[0] = opd_to_device(image, opd_device_make(OPD_META, -1), OPD_FLOAT32);
        in[1] = opd_to_device(in[1], opd_device_make(OPD_META, -1), OPD_FLOAT32);
        if (graph && opd_graph_run(graph, in, 2, &out, 1) == 1) { opd_print(out); }      /* computes only sizes */
        opd_graph_free(graph);
        opd_plugin_unload(plugin);
    }
    return opd_finish() || right != 2;
}
