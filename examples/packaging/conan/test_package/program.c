#include "opdispatch.h"

int main(void) {
    OPD_SCOPE {
        opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
        opd_print(opd_add(x, x));
    }
    return opd_finish();
}
