//== helpers of the formulas ===========================================================================================

/* Helpers of the pointwise formulas for floats.  OPD_FORMULA_QUALIFIERS is `static inline`, or in CUDA code `static
   __device__ inline`. */
#if defined(OPD_FORMULA_HELPERS_FLOAT)
#undef OPD_FORMULA_HELPERS_FLOAT
#include "formulas_float.typed.h"
#endif
/* Helpers of the pointwise formulas for integers.  Each is named OPD_HELPER(name) and is defined for every input.
   OPD_NOTE(k) reports a division that C does not define: k = 1 for a division by zero, k = 2 for OPD_SMALLEST / -1,
   which overflows.  OPD_NOTES declares the parameter through which OPD_NOTE reports, and OPD_PASS_NOTES passes it on;
   both may be empty. */
#if defined(OPD_FORMULA_HELPERS_INT)
#undef OPD_FORMULA_HELPERS_INT
#include "formulas_int.typed.h"
#endif

