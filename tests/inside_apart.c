/* The functions of inside.h, for the separately compiled files of src/: see run.sh --rooms. */
#define OPDISPATCH_IMPLEMENTATION
#include "inside.h"
