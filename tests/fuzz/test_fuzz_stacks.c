/* The fuzz target for stacks of transforms, with fixed seeds. */
#define FUZZ_SEEDS 400
#include "fuzz_stacks.c"
