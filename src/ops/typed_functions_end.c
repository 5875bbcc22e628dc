//== end of what is printed
#ifdef __cplusplus
}
#endif
#endif /* OPDISPATCH_WRAPPERS */

