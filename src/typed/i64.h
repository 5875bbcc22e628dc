#include "end.h"
#define OPDI_T int64_t
#define OPDI_BYTES 8
#define OPDI_WHOLE 1
#define OPDI_TYPED(name) opdi_##name##_i64
