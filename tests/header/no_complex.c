#include "opdispatch.h"
#include <stdio.h>
#include <string.h>
static int refused(const opd_tensor *result) {
    const int said = !result &&
        strstr(opd_error_message(), "arithmetic of complex numbers is left out: OPD_NO_COMPLEX was defined") != NULL;
    if (!said) { printf("not refused, or by: %s\n", opd_error_message()); }
    opd_error_clear();
    return said;
}
int main(void) {
    const double parts[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t sizes[3] = {2, 2, 2};
    opd_tensor *z = opd_view_as_complex(opd_tensor_from(parts, opd_ints_of(sizes, 3), OPD_FLOAT64));
    opd_tensor *sum = opd_view_as_real(opd_sum(opd_transpose(z, 0, 1))), *info[2];
    if (!sum || opd_data_f64(sum)[0] < 15.5 || opd_data_f64(sum)[1] < 19.5 || opd_data_f64(sum)[1] > 20.5) { return 1; }
    if (!refused(opd_mul(z, z)) || !refused(opd_exp(z)) || !refused(opd_mm(z, z)) || !refused(opd_cumsum(z, 0))) { return 2; }
    if (!refused(opd_dot(opd_select(z, 0, 0), opd_select(z, 0, 1))) || !refused(opd_linalg_inv(z))) { return 3; }
    if (!refused(opd_linalg_cholesky_ex(info, z) ? NULL : z) || !refused(opd_linalg_svdvals(z))) { return 4; }
    return opd_finish();
}
