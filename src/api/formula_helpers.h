//== helpers of the formulas ===========================================================================================

/* Helpers of the float formulas.  OPD_FORMULA_QUALIFIERS is `static inline`, or `static __device__ inline`. */
#if defined(OPD_FORMULA_HELPERS_FLOAT)
#undef OPD_FORMULA_HELPERS_FLOAT
#include "formulas_float.typed.h"
#endif
/* Helpers of the integer formulas.  Each is named OPD_HELPER(name) and is defined for every input.  OPD_NOTES declares
   a further parameter, and OPD_PASS_NOTES passes it on, or both are empty.  OPD_NOTE(k) notes a division: k = 1 by
   zero, k = 2 of the smallest number OPD_SMALLEST by -1. */
#if defined(OPD_FORMULA_HELPERS_INT)
#undef OPD_FORMULA_HELPERS_INT
#include "formulas_int.typed.h"
#endif

