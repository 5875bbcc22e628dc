/* The second half of the library: see OPDISPATCH_PART. Two cores compile both halves in half the time. */
#define OPDISPATCH_PART 2
#define OPDISPATCH_IMPLEMENTATION
#undef OPD_AOTI                                   /* the first half has these functions */
#include "opdispatch.h"
