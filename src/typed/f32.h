#include "end.h"
#define OPDI_T float
#define OPDI_BYTES 4
#define OPDI_WHOLE 0
#define OPDI_FN(name) name##f
#define OPDI_TYPED(name) opdi_##name##_f32
#define OPDI_LEVEL 0
#define OPDI_WIDE(name) opdi_##name##_plain_f32
