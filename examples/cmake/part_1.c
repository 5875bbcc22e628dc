/* The first part of the library: see OPDISPATCH_PARTS. Two cores compile both parts in half the time. */
#define OPDISPATCH_PARTS 2
#define OPDISPATCH_PART 1
#define OPDISPATCH_IMPLEMENTATION
#include "opdispatch.h"
