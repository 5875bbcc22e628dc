/* OPDISPATCH_PART 1 is the core and the typed functions, 2 the kernels and the operators; without it one object has
   all.  What one part has and the other calls or reads is OPDI_SHARED.  In the rooms of the core types, macros and
   inline functions are for both; functions and variables stand between #if defined(OPDI_CORE) and its end, behind the
   prototypes of those that are shared.  OPDI_INTERNAL is what several files of src/ call or read, and only one part: it
   is static wherever the whole header is compiled.  OPDI_APART compiles each file of src/ by itself. */
#if defined(OPDI_APART)
#define OPDI_IMPLEMENTED
#define OPDI_CORE
#define OPDI_OPERATORS
#define OPDI_SHARED
#define OPDI_SHARED_STATE extern
#elif !defined(OPDISPATCH_PART)
#define OPDI_CORE
#define OPDI_OPERATORS
#define OPDI_SHARED static
#define OPDI_SHARED_STATE static
#elif defined(OPD_STATIC)
#error "OPD_STATIC with OPDISPATCH_PART: what is static cannot be linked with the other part"
#elif OPDISPATCH_PART == 1
#define OPDI_CORE
#define OPDI_SHARED_STATE OPDI_SHARED
#elif OPDISPATCH_PART == 2
#define OPDI_OPERATORS
#define OPDI_SHARED_STATE extern OPDI_SHARED
#else
#error "OPDISPATCH_PART is 1 or 2"
#endif
#if defined(OPDISPATCH_PART)
#if defined(__GNUC__) && !defined(__TINYC__) && !defined(_WIN32)
#define OPDI_SHARED __attribute__((visibility("hidden")))
#else
#define OPDI_SHARED
#endif
#endif
#if defined(OPDI_APART)
#define OPDI_INTERNAL
#else
#define OPDI_INTERNAL static
#endif

