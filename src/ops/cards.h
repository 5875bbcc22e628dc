//----------------------------------------------------------------------------------------------------------------------
//  >>operators    the cards: everything about one operator in one place
//
//  Each card fills an opd_op_desc. Kernels take results from opd_result, formulas call public operators. The list of
//  all cards is printed by tests/wrappers.py from the comments in >>api:op:...: a card that is not in
//  the list is an unused function, a name in it without a card does not compile.
//----------------------------------------------------------------------------------------------------------------------

#if defined(OPDI_OPERATORS)

#define OPDI_OP(name) OPDI_INTERNAL void opdi_card_##name(opd_op_desc *op)
#endif
