/* Runs without the built-in operators (OPD_NO_OPERATORS): a copy on a device that converts elements uses the device's
   function for pointwise formulas.  tests/check_header.sh builds this program (check core_alone). */
#include "opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *device_alloc(void *user, int index, size_t bytes) {
    (void)user;
    (void)index;
    return malloc(bytes ? bytes : 1);
}
static void device_free(void *user, int index, void *data, size_t bytes) {
    (void)user;
    (void)index;
    (void)bytes;
    free(data);
}
static int device_copy(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    (void)user;
    (void)to_index;
    (void)from_index;
    memcpy(to, from, bytes);
    return 0;
}
static int formulas;             /* number of formulas that the device has computed */
/* Copies floats to doubles; both sides are contiguous. */
static int device_pointwise(void *user, int index, const opd_pointwise *pointwise) {
    const float *from = (const float *)pointwise->operands[1].data;
    double *to = (double *)pointwise->operands[0].data;
    (void)user;
    (void)index;
    formulas++;
    if (pointwise->formula != OPD_FORMULA_copy || !pointwise->linear || pointwise->noperands != 2) { return -1; }
    for (int64_t i = 0; i < pointwise->numel; i++) { to[i] = from[i]; }
    return 0;
}
int main(void) {
    static const float numbers[4] = {1, 2, 3, 4};
    const opd_device device = opd_device_make(OPD_PRIVATEUSE1, 0);
    opd_backend_desc desc;
    int wrong = 0;
    memset(&desc, 0, sizeof desc);
    desc.name = "npu";
    desc.alloc = device_alloc;
    desc.free = device_free;
    desc.copy = device_copy;
    desc.pointwise = device_pointwise;
    if (opd_backend_register(OPD_PRIVATEUSE1, &desc)) { return opd_finish(); }
    OPD_SCOPE {
        opd_tensor *x = opd_to_device(opd_tensor_from(numbers, OPD_INTS(4), OPD_FLOAT32), device, OPD_FLOAT32);
        opd_tensor *y = opd_copy_(opd_tensor_new_on(OPD_INTS(4), OPD_FLOAT64, device), x);
        opd_tensor *z = y ? opd_to_device(y, opd_device_make(OPD_CPU, 0), OPD_FLOAT64) : NULL;
        for (int i = 0; i < 4; i++) { wrong += !z || opd_data_f64(z)[i] != numbers[i]; }
    }
    if (wrong || formulas != 1) { printf("%d elements are wrong, %d formulas were computed\n", wrong, formulas); }
    return wrong || formulas != 1 ? 1 : opd_finish();
}
