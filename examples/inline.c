/* Compiles an operator while the program runs, from text that the program writes.
   cc -O2 examples/inline.c -o inline -lm && ./inline

   The compiler has to find opdispatch.h.  Therefore, leave the program in the folder in which you ran this command, or
   below it, or set $OPD_INCLUDE to the folder of opdispatch.h.  The first run waits for the compiler.  Later runs find
   the compiled operator in ~/.cache/opdispatch.  With OPD_VERBOSE=1, the program prints the compiler's commands. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <string.h>

/* The operator computes a formula of x in one pass over memory.  Built-in operators would take one pass each. */
static const char source[] =
    "#include \"opdispatch.h\"\n"
    "#include <math.h>\n"
    "static int formula(opd_call *call) {\n"
    "    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, 0));\n"
    "    opd_tensor *out = opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));\n"
    "    if (!out || !opd_data(out)) { return out ? 0 : -1; }     /* an error; or, as `fake`, only sizes */\n"
    "    const float *from = opd_data_f32(x);\n"
    "    float *to = opd_data_f32(out);\n"
    "    if (!from || !to) { return -1; }\n"
    "    for (int64_t i = 0; i < opd_numel(x); i++) { float x = from[i]; to[i] = %s; }\n"
    "    return 0;\n"
    "}\n"
    "OPD_LIBRARY(inline, lib) {\n"
    "    opd_define(lib, &(opd_op_desc){\n"
    "        .schema = \"formula(Tensor x) -> Tensor\", .cpu = formula, .fake = formula,\n"
    "        .backward = OPD_NOT_DIFFERENTIABLE, .vmap = OPD_BATCH_POINTWISE});\n"
    "}\n";

int main(int argc, char **argv) {
    if (argc > 2 || (argc > 1 && argv[1][0] == '-' && (argv[1][1] == '-' || argv[1][1] == 'h'))) {
        const bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        fputs("usage: inline [FORMULA]\n  FORMULA   an expression of x in C, such as \"x * expf(-x * x)\"; write brackets around it if it begins with --\n", asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    char text[2000];
    snprintf(text, sizeof text, source, argc > 1 ? argv[1] : "x * expf(-x * x)");
    /* for a mistake in the text, the error contains the compiler's message */
    opd_compile_and_load_inline("formula", text, "-O3");
    OPD_SCOPE {
        static opd_op *formula;
        opd_tensor *x = opd_tensor_from((float[]){-1, 0, 0.5f, 1}, OPD_INTS(4), OPD_FLOAT32);
        opd_print(OPD_CALL(OPD_OP(&formula, "inline::formula"), x));
    }
    return opd_finish();
}
