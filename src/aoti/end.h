#if defined(OPDI_AOTI_QUIET)
#pragma GCC diagnostic pop
#undef OPDI_AOTI_QUIET
#endif
#undef OPDI_AOTI_HERE
#undef OPDI_AOTI_ELSEWHERE

