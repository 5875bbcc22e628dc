// The fuzz target for calls of all operators with valid and invalid arguments, with fixed seeds.
#define FUZZ_SEEDS 1500
#include "fuzz_operators.c"
