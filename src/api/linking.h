#ifdef __cplusplus
extern "C" {
#endif
//----------------------------------------------------------------------------------------------------------------------
//  >>api:linking    a library of another version or with other switches is refused by the linker
//
//  The library defines a symbol for its version, and one for each switch (OPD_CHECKED, OPD_LEAN, OPD_NO_...) that it
//  was compiled with.  Each other file of the program refers to the symbols of its own version and switches.  So
//  "undefined reference to `opd_library_with_OPD_CHECKED'" means that this file was compiled with OPD_CHECKED, and the
//  library without.  The library may have more switches than the file.  Plug-ins are checked when they are loaded.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_VERSION_SYMBOL(major, minor) OPDI_VERSION_SYMBOL_(major, minor)
#define OPDI_VERSION_SYMBOL_(major, minor) opd_library_of_version_##major##_##minor
#if defined(__GNUC__) && !defined(OPDISPATCH_IMPLEMENTATION) && !defined(OPDISPATCH_PLUGIN) && !defined(OPD_STATIC) && \
    !defined(OPD_DLL)
#if defined(__ELF__) && defined(__has_attribute)
#if __has_attribute(retain) && (defined(__x86_64__) || defined(__i386__) || defined(__aarch64__))
#define OPDI_RETAIN __attribute__((used, retain))            /* also if the linker drops unused sections */
#endif
#endif
#if !defined(OPDI_RETAIN)
#define OPDI_RETAIN __attribute__((used))
#endif
#define OPDI_REFER(symbol) OPDI_REFER_(symbol)
#define OPDI_REFER_(symbol) \
    OPD_API const char symbol; \
    static const char *const symbol##_is_linked OPDI_RETAIN = &symbol;
#define OPDI_SWITCH(name) OPDI_REFER(opd_library_with_OPD_##name)
OPDI_REFER(OPDI_VERSION_SYMBOL(OPD_VERSION_MAJOR, OPD_VERSION_MINOR))
#include "switches.printed.h"
#undef OPDI_SWITCH
#endif
#ifdef __cplusplus
}
#endif
