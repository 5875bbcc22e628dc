//== end of what left_out.py prints
#if defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic pop
#endif
OPDI_ONCE_END
#endif
#endif

