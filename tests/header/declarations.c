#include "opdispatch.h"
#include <stdio.h>
int dummy;
