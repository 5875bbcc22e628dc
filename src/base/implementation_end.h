#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#if defined(OPDI_LESS) && defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic pop
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT DEFAULT
#elif defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC pop_options
#endif
#endif /* OPDISPATCH_IMPLEMENTATION */
#if !defined(OPDI_IMPLEMENTED) && defined(OPDISPATCH_IMPLEMENTATION)
#error "this copy of opdispatch.h has only the declarations: compile the implementation with the whole opdispatch.h"
#endif
#if !defined(OPDI_IN_PART)
#define OPDI_IN_PART(at) 1       /* for files that are not only compiled in the implementation */
#endif

