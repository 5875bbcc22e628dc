/* Calls operators of the published torchvision package from C, without PyTorch, Python or CUDA.
   cc -O2 examples/torchvision_nms.c -o torchvision_nms -lm
   ci: $OPD_TORCHVISION

   The operators are in a shared library in the package for Linux:
     python3 -m pip download --no-deps --only-binary :all: torchvision==0.29.2
     unzip torchvision-*.whl torchvision/_C_stable.so && ./torchvision_nms torchvision/_C_stable.so */
#define OPDISPATCH_IMPLEMENTATION
#define OPD_AOTI
#include "../opdispatch.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc != 2 || argv[1][0] == '-') {
        const bool asked = argc < 2 || (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        fputs("usage: torchvision_nms .../torchvision/_C_stable.so\n", asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    const int operators = opd_extension_load(argv[1]);
    if (operators >= 0) { printf("%d operators\n", operators); }
    OPD_SCOPE {
        /* Of boxes that overlap by more than half, nms keeps the best one: here it removes the second of three
           boxes. */
        static opd_op *nms, *roi_pool;
        float corners[] = {0, 0, 10, 10,  1, 1, 11, 10,  20, 20, 30, 30}, points[] = {0.9f, 0.8f, 0.7f};
        opd_tensor *boxes = opd_tensor_from(corners, OPD_INTS(3, 4), OPD_FLOAT32);
        opd_tensor *scores = opd_tensor_from(points, OPD_INTS(3), OPD_FLOAT32);
        opd_print(OPD_CALL(OPD_OP(&nms, "torchvision::nms"), boxes, scores, 0.5));       /* tensor([0, 2]) */

        /* The maximum of each quarter of a region, and the gradient of the image. */
        opd_tensor *image = opd_reshape(opd_arange(OPD_V(36), OPD_FLOAT32), OPD_INTS(1, 1, 6, 6));
        opd_tensor *region = opd_tensor_from((float[]){0, 1, 1, 4, 4}, OPD_INTS(1, 5), OPD_FLOAT32), *results[2];
        opd_tensor_set_requires_grad(image, true);
        opd_value args[] = {opd_value_tensor(image), opd_value_tensor(region), opd_value_double(1), opd_value_int(2),
                            opd_value_int(2)};
        if (opd_call_tensors(OPD_OP(&roi_pool, "torchvision::roi_pool"), results, args, 5) == 0) {
            opd_print(opd_flatten(results[0], 0, -1));                       /* 14, 16, 26, 28 */
            opd_backward(opd_sum(results[0]));
            opd_print(opd_sum(opd_tensor_grad(image)));                       /* tensor(4.) */
        }
    }
    return opd_finish();
}
