#define OPDISPATCH_IMPLEMENTATION
#include "opdispatch.h"
