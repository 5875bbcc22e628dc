// Calls of all operators with arguments that fit and that do not: the fuzz target on fixed seeds.
#define FUZZ_SEEDS 1500
#include "fuzz_operators.c"
