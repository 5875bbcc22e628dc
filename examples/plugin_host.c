/* Loads the plug-in of examples/plugin.c, calls its operator, computes a gradient through it, and unloads the plug-in.
   cc -O2 examples/plugin_host.c -o plugin_host -lm
   ci: $tmp/plugin.so

   Run it with the plug-in in the same folder: ./plugin_host plugin.so
   The program exports no symbols.  The plug-in calls the program through a table of function pointers, which it gets
   when it is loaded. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc != 2 || argv[1][0] == '-') {
        const bool asked = argc < 2 || (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        fputs("usage: plugin_host plugin.so\n", asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    opd_plugin *plugin = opd_plugin_load(argv[1]);
    OPD_SCOPE {
        static opd_op *dot;
        opd_tensor *x = opd_tensor_from((float[]){1, 2, 3}, OPD_INTS(3), OPD_FLOAT32);
        opd_tensor *w = opd_tensor_from((float[]){4, 5, 6}, OPD_INTS(3), OPD_FLOAT32);
        opd_tensor_set_requires_grad(w, true);
        opd_tensor *y = OPD_CALL(OPD_OP(&dot, "plugin::dot"), x, w);
        opd_print(y);                                       /* tensor(32., grad_fn=<DotBackward0>) */
        opd_plugin_unload(plugin);                         /* its backward function stays in memory: y needs it */
        printf("plugin::dot is %s\n", opd_find_quiet("plugin::dot") ? "here" : "gone");
        opd_backward(y);
        opd_print(opd_tensor_grad(w));                      /* tensor([1., 2., 3.]) */
    }
    return opd_finish();
}
