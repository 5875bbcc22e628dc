//======================================================================================================================
//  Stop here if you are only interested in the API: what follows is the implementation.
//======================================================================================================================
#if defined(OPDISPATCH_IMPLEMENTATION) && !defined(OPDI_IMPLEMENTED)
#define OPDI_IMPLEMENTED
#undef opd_keep                   /* the implementation has the functions: see >>api:places */
#undef opd_assign
#if defined(OPD_LEAN) && !defined(OPDI_LEAN_DECLARED)
#error "define OPD_LEAN before opdispatch.h is included for the first time"
#endif

