/* Measures convolutions and their gradients, beside PyTorch on the same numbers.
   cc -O2 bench/convolutions.c -o bench_convolutions -lm -lpthread -ldl
   ./bench_convolutions [--quick] [--filter TEXT] [--python PATH] [--threads N] [--level LEVEL] [--markdown] [--help]
   ci: --filter 960

   A convolution has three rows: its result, and the gradients of its input and of its weight.  Tensor a is the input,
   b is the weight, and c is the gradient of the result.  Both sides run the rows in turns (see bench/rows.h). */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include "rows.h"

/* The rows of a convolution.  x, w and y: sizes of the input, of the weight and of the result.  rest: stride, padding,
   dilation, transposed, output_padding and groups. */
#define GRADIENT(section, name, x, w, y, rest, mask, index) \
    {section, name, "f32 " x "; f32 " w "; f32 " y, \
     "torch.ops.aten.convolution_backward(c, a, b, None, " rest ", " mask ")[" index "]", BENCH_LOOSE}
#define CONVOLUTION(name, x, w, y, rest) \
    {"result", name, "f32 " x "; f32 " w, "torch.convolution(a, b, None, " rest ")", BENCH_LOOSE}, \
    GRADIENT("input", name, x, w, y, rest, "[True, False, False]", "0"), \
    GRADIENT("weight", name, x, w, y, rest, "[False, True, False]", "1")
/* The arguments `rest` of a convolution in two dims, with the same stride and padding in both. */
#define PLANES(stride, padding, groups) \
    "[" #stride ", " #stride "], [" #padding ", " #padding "], [1, 1], False, [0, 0], " #groups
#define LINES(padding, groups) "[1], [" #padding "], [1], False, [0], " #groups

static const bench_row rows[] = {
    CONVOLUTION("7 x 7 by 2, 3 to 64", "4,3,224,224", "64,3,7,7", "4,64,112,112", PLANES(2, 3, 1)),
    CONVOLUTION("3 x 3, 64", "4,64,56,56", "64,64,3,3", "4,64,56,56", PLANES(1, 1, 1)),
    CONVOLUTION("3 x 3, 128", "4,128,28,28", "128,128,3,3", "4,128,28,28", PLANES(1, 1, 1)),
    CONVOLUTION("3 x 3, 256", "4,256,14,14", "256,256,3,3", "4,256,14,14", PLANES(1, 1, 1)),
    CONVOLUTION("3 x 3, 512", "4,512,7,7", "512,512,3,3", "4,512,7,7", PLANES(1, 1, 1)),
    CONVOLUTION("3 x 3, 64, one image", "1,64,56,56", "64,64,3,3", "1,64,56,56", PLANES(1, 1, 1)),
    CONVOLUTION("3 x 3, 512, one image", "1,512,7,7", "512,512,3,3", "1,512,7,7", PLANES(1, 1, 1)),
    CONVOLUTION("3 x 3 by 2, 64 to 128", "4,64,56,56", "128,64,3,3", "4,128,28,28", PLANES(2, 1, 1)),
    CONVOLUTION("3 x 3 by 2, 128 to 256", "4,128,28,28", "256,128,3,3", "4,256,14,14", PLANES(2, 1, 1)),
    CONVOLUTION("3 x 3 by 2, 256 to 512", "4,256,14,14", "512,256,3,3", "4,512,7,7", PLANES(2, 1, 1)),
    CONVOLUTION("1 x 1 by 2, 256 to 512", "4,256,14,14", "512,256,1,1", "4,512,7,7", PLANES(2, 0, 1)),
    CONVOLUTION("1 x 1, 2048 to 512", "4,2048,7,7", "512,2048,1,1", "4,512,7,7", PLANES(1, 0, 1)),
    CONVOLUTION("depthwise 3 x 3 by 2, 96, one image", "1,96,112,112", "96,1,3,3", "1,96,56,56", PLANES(2, 1, 96)),
    CONVOLUTION("depthwise 3 x 3, 960", "4,960,7,7", "960,1,3,3", "4,960,7,7", PLANES(1, 1, 960)),
    CONVOLUTION("depthwise 5 x 5, 240", "4,240,14,14", "240,1,5,5", "4,240,14,14", PLANES(1, 2, 240)),
    CONVOLUTION("depthwise 7 x 7, 384", "4,384,14,14", "384,1,7,7", "4,384,14,14", PLANES(1, 3, 384)),
    CONVOLUTION("depthwise 7 x 7, 96, one image", "1,96,56,56", "96,1,7,7", "1,96,56,56", PLANES(1, 3, 96)),
    CONVOLUTION("3 x 3, 128 in 8 groups", "4,128,28,28", "128,16,3,3", "4,128,28,28", PLANES(1, 1, 8)),
    CONVOLUTION("3 x 3, 128 in 32 groups, one image", "1,128,56,56", "128,4,3,3", "1,128,56,56", PLANES(1, 1, 32)),
    CONVOLUTION("3 x 3 by 2, 256 in 32 groups, one image", "1,256,56,56", "256,8,3,3", "1,256,28,28",
                PLANES(2, 1, 32)),
    CONVOLUTION("3 x 3, 256 in 32 groups", "4,256,28,28", "256,8,3,3", "4,256,28,28", PLANES(1, 1, 32)),
    CONVOLUTION("3 x 3 by 2, 512 in 32 groups", "4,512,28,28", "512,16,3,3", "4,512,14,14", PLANES(2, 1, 32)),
    CONVOLUTION("3 x 3, 512 in 32 groups", "4,512,14,14", "512,16,3,3", "4,512,14,14", PLANES(1, 1, 32)),
    CONVOLUTION("3 x 3 by 2, 1024 in 32 groups", "4,1024,14,14", "1024,32,3,3", "4,1024,7,7", PLANES(2, 1, 32)),
    CONVOLUTION("3 x 3, 1024 in 32 groups", "4,1024,7,7", "1024,32,3,3", "4,1024,7,7", PLANES(1, 1, 32)),
    CONVOLUTION("5 x 5, 32", "4,32,56,56", "32,32,5,5", "4,32,56,56", PLANES(1, 2, 1)),
    CONVOLUTION("transposed 4 x 4 by 2, 64 to 32", "4,64,28,28", "64,32,4,4", "4,32,56,56",
                "[2, 2], [1, 1], [1, 1], True, [0, 0], 1"),
    CONVOLUTION("1-d, filter of 5, 64", "8,64,2000", "64,64,5", "8,64,2000", LINES(2, 1)),
    CONVOLUTION("1-d, depthwise, filter of 31, 256", "4,256,500", "256,1,31", "4,256,500", LINES(15, 256)),
    CONVOLUTION("3 x 3 x 3, 16, one image", "1,16,16,32,32", "16,16,3,3,3", "1,16,16,32,32",
                "[1, 1, 1], [1, 1, 1], [1, 1, 1], False, [0, 0, 0], 1"),
};
int main(int argc, char **argv) { return bench_main(argc, argv, rows, sizeof rows / sizeof *rows); }
