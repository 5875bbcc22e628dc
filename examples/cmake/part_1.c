/* The first half of the library: see OPDISPATCH_PART. Two cores compile both halves in half the time. */
#define OPDISPATCH_PART 1
#define OPDISPATCH_IMPLEMENTATION
#include "opdispatch.h"
