#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#if defined(OPDI_LESS) && defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic pop
#endif
#endif /* OPDISPATCH_IMPLEMENTATION */
#if !defined(OPDI_IN_PART)
#define OPDI_IN_PART(at) 1       /* for files that are not only compiled in the implementation */
#endif

