/* The header can be compiled in two parts.  If OPDISPATCH_PART is 1, this object file has the core and the typed
   functions; if it is 2, the kernels and the operators; if it is not defined, everything.
     OPDI_SHARED      a function or variable that both parts use
     OPDI_INTERNAL    one that several files of src/ use, but only one part; static unless OPDI_APART is defined
     OPDI_APART       defined if each file of src/ is compiled by itself
   In the core's folders, types, macros, inline functions and the prototypes of shared functions do not stand inside of
   "#if defined(OPDI_CORE)", because both parts use them.  All other functions and the variables stand inside. */
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
#error "OPD_STATIC with OPDISPATCH_PART: static functions cannot be linked with the other part"
#elif OPDISPATCH_PART == 1
#define OPDI_CORE
#define OPDI_SHARED_STATE OPDI_SHARED
#elif OPDISPATCH_PART == 2
#define OPDI_OPERATORS
#define OPDI_SHARED_STATE extern OPDI_SHARED
#else
#error "OPDISPATCH_PART must be 1 or 2"
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

