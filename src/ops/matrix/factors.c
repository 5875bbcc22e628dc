#if !defined(OPD_NO_OP_SOLVE)
#if defined(OPDI_OPERATORS)
OPDI_LOOPS_BEGIN
OPDI_LOOPS_END
#endif
#endif
