#include "f64.h"
#undef OPDI_LEVEL
#undef OPDI_WIDE
#define OPDI_LEVEL 1
#define OPDI_WIDE(name) opdi_##name##_avx2_f64
