// Fuzz target for saved graphs: see fuzz.h for how to build and run it.  Input: a file.
#define GRAPH_FILE
#include "fuzz_graph.c"
