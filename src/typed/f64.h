#include "end.h"
#define OPDI_T double
#define OPDI_BYTES 8
#define OPDI_WHOLE 0
#define OPDI_FN(name) name
#define OPDI_TYPED(name) opdi_##name##_f64
#define OPDI_LEVEL 0
#define OPDI_WIDE(name) opdi_##name##_plain_f64
