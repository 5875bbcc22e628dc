/* The fuzz target for random programs with views, writes, modes, hooks and gradients, with fixed seeds:
   fuzz/fuzz_program.c. */
#define FUZZ_SEEDS 2000
#include "fuzz_program.c"
