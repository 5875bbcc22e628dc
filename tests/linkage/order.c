/* Blocks of a plug-in for tests/plugins/test_dlls.c: each block registers another kernel for the operator. */
#include "opdispatch.h"

static int one(opd_call *call) { return opd_return_int(call, 1); }
static int two(opd_call *call) { return opd_return_int(call, 2); }
static int three(opd_call *call) { return opd_return_int(call, 3); }

OPD_LIBRARY(order, lib) { opd_def(lib, "which() -> int"); }
OPD_LIBRARY_FRAGMENT(order, lib) { opd_impl(lib, "which", one); }
OPD_LIBRARY_FRAGMENT(order, lib) { opd_impl(lib, "which", two); }
OPD_LIBRARY_FRAGMENT(order, lib) { opd_impl(lib, "which", three); }
