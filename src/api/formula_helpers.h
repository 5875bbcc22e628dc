//== helpers of the formulas ===========================================================================================

/* Of the float formulas; OPD_FORMULA_QUALIFIERS is `static inline`, or `static __device__ inline`. */
#if defined(OPD_FORMULA_HELPERS_FLOAT)
#undef OPD_FORMULA_HELPERS_FLOAT
#include "formulas_float.typed.h"
#endif
/* Of the integer formulas, named OPD_HELPER(name), defined for every input.  OPD_NOTES is a further parameter,
   OPD_PASS_NOTES hands it on, or both are empty; OPD_NOTE(k) notes a division, 1: by zero, 2: of the smallest number
   OPD_SMALLEST by -1. */
#if defined(OPD_FORMULA_HELPERS_INT)
#undef OPD_FORMULA_HELPERS_INT
#include "formulas_int.typed.h"
#endif

