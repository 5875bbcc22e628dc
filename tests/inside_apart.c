/* The windows of inside.h, for the files of src/ that are compiled by themselves: see run.sh --rooms. */
#define OPDISPATCH_IMPLEMENTATION
#include "inside.h"
