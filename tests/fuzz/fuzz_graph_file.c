// Fuzz target of saved graphs: fuzz.h says how it is built and run.  Input: a file.
#define GRAPH_FILE
#include "fuzz_graph.c"
