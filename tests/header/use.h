#include "opdispatch.h"
#include <stdio.h>
int use_library(void);
