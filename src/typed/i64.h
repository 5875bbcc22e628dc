#undef OPDI_T
#undef OPDI_BYTES
#undef OPDI_WHOLE
#undef OPDI_FN
#undef OPDI_TYPED
#undef OPDI_LEVEL
#undef OPDI_WIDE
#define OPDI_T int64_t
#define OPDI_BYTES 8
#define OPDI_WHOLE 1
#define OPDI_TYPED(name) opdi_##name##_i64
