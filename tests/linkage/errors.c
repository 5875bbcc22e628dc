/* A plug-in for tests/plugins/test_dlls.c: its operator returns whether Windows showed errors in dialogs while the
   plug-in was loaded. */
#include "opdispatch.h"

extern unsigned long __stdcall GetThreadErrorMode(void);
static unsigned long mode;
__attribute__((constructor)) static void load(void) { mode = GetThreadErrorMode(); }
static int say(opd_call *call) { return opd_return_int(call, (int64_t)mode); }

OPD_LIBRARY(errors, lib) {
    opd_def(lib, "mode() -> int");
    opd_impl(lib, "mode", say);
}
