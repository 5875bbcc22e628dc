//======================================================================================================================
//  Stop here if you are only interested in the API: what follows is the implementation.
//======================================================================================================================
#if defined(OPDISPATCH_IMPLEMENTATION) && !defined(OPDI_IMPLEMENTED)
#define OPDI_IMPLEMENTED

