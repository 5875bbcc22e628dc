/* The header can be compiled in N parts: OPDISPATCH_PARTS is N, and OPDISPATCH_PART is the number of this part, from 1
   to N.  src/join.py writes "#if OPDI_IN_PART(at)" around the code of each .c file.  `at` says how much of the compile
   time of all files lies before the middle of this file, in thousandths.  Headers of src/ are compiled in each part.
     OPDI_INTERNAL    a function or variable that several files of src/ use; static unless OPDI_DIVIDED is defined
     OPDI_VARIABLE    a variable without an initial value that a header of src/ declares
     OPDI_DIVIDED     defined if the implementation is compiled as several objects: as parts, or (with OPDI_APART) each
                      file of src/ by itself.  Then each object has prototypes of everything that is OPDI_INTERNAL. */
#undef OPDI_IN_PART
#if defined(OPDISPATCH_PART)
#if defined(OPD_STATIC)
#error "OPD_STATIC with OPDISPATCH_PART: static functions cannot be linked with the other parts"
#elif defined(OPD_LEAN)
#error "OPD_LEAN with OPDISPATCH_PART: the library is then one object, so do not define OPDISPATCH_PART"
#endif
#if !defined(OPDISPATCH_PARTS)
#define OPDISPATCH_PARTS 2
#endif
#if OPDISPATCH_PARTS < 1 || OPDISPATCH_PARTS > 64
#error "OPDISPATCH_PARTS is the number of parts: it must be from 1 to 64"
#elif OPDISPATCH_PART < 1 || OPDISPATCH_PART > OPDISPATCH_PARTS
#error "OPDISPATCH_PART must be from 1 to OPDISPATCH_PARTS, the number of parts (2 if it is not defined)"
#endif
#define OPDI_IN_PART(at) ((at) * OPDISPATCH_PARTS / 1000 + 1 == OPDISPATCH_PART)
#define OPDI_DIVIDED
#elif defined(OPDISPATCH_PARTS)
#error "OPDISPATCH_PARTS without OPDISPATCH_PART: also define OPDISPATCH_PART, the number of this part"
#elif defined(OPDI_APART)
#define OPDI_IMPLEMENTED
#define OPDI_DIVIDED
#else
#define OPDI_IN_PART(at) 1
#endif

#if !defined(OPDI_DIVIDED)
#define OPDI_INTERNAL static
#define OPDI_VARIABLE static
#else
#if defined(OPDISPATCH_PART) && defined(__GNUC__) && !defined(__TINYC__) && !defined(_WIN32)
#define OPDI_INTERNAL __attribute__((visibility("hidden")))
#else
#define OPDI_INTERNAL
#endif
#define OPDI_VARIABLE extern OPDI_INTERNAL
#endif
