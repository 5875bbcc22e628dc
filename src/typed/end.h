#undef OPDI_T
#undef OPDI_BYTES
#undef OPDI_WHOLE
#undef OPDI_FN
#undef OPDI_TYPED
#undef OPDI_LEVEL
#undef OPDI_WIDE
