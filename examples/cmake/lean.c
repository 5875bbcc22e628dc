/* The whole library for programs that keep only what they call: see OPD_LEAN. */
#define OPDISPATCH_IMPLEMENTATION
#include "opdispatch.h"
