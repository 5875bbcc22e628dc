#include "base.h"

//== symbols for the linker: see >>api:linking =========================================================================

#if !defined(OPD_STATIC)
#define OPDI_DEFINE(symbol) OPDI_DEFINE_(symbol)
#define OPDI_DEFINE_(symbol) OPD_API const char symbol; const char symbol = 1;
#define OPDI_SWITCH(name) OPDI_DEFINE(opd_library_with_OPD_##name)
#if defined(__cplusplus)
extern "C" {
#endif
OPDI_DEFINE(OPDI_VERSION_SYMBOL(OPD_VERSION_MAJOR, OPD_VERSION_MINOR))
#include "switches.printed.h"
#if defined(__cplusplus)
}
#endif
#undef OPDI_SWITCH
#endif
