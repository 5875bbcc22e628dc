/* Random programs of views, writes, modes, hooks and gradients, of fixed seeds: fuzz/fuzz_program.c. */
#define FUZZ_SEEDS 2000
#include "fuzz_program.c"
