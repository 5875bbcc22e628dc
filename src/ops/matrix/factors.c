#include "../ops.h"
