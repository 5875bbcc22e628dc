#if defined(OPDI_OPERATORS)
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#if defined(OPDI_LESS) && defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic pop
#endif
#endif /* OPDI_OPERATORS */
#endif /* OPDISPATCH_IMPLEMENTATION */

