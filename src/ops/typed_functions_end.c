//== end of what is printed
#ifdef __cplusplus
}
#endif
#endif /* OPDISPATCH_WRAPPERS */
#undef OPDI_MAIN_PASS
#undef OPDI_OPERATORS

