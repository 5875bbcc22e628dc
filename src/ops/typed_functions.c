#include "ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>wrappers     the typed functions of the built-in operators
//
//  Printed by tests/wrappers.py; in the implementation, and in each plug-in for itself.
//----------------------------------------------------------------------------------------------------------------------

#if (defined(OPDI_CORE) || defined(OPDISPATCH_PLUGIN)) && !defined(OPDISPATCH_WRAPPERS)
#define OPDISPATCH_WRAPPERS
#include <stdarg.h>

