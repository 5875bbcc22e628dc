/* The two parts of the header.  If OPDISPATCH_PART is 1, this object file has the core and the typed functions; if it
   is 2, the kernels and the operators; if it is not defined, everything.  A function or variable of one part that the
   other part uses is OPDI_SHARED.  In the folders of the core, types, macros and inline functions are for both parts.
   Functions and variables are inside of #if defined(OPDI_CORE), and the prototypes of shared functions are before it.
   An OPDI_INTERNAL function or variable is used by several files of src/ but only in one part; it is static if the
   whole header is compiled.  If OPDI_APART is defined, each file of src/ is compiled by itself. */
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

