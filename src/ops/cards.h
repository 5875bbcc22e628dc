//----------------------------------------------------------------------------------------------------------------------
//  >>operators    the cards: everything about one operator in one place
//
//  Each card fills an opd_op_desc. Kernels take results from opd_result, formulas call public operators. The comment
//  above a card says what its typed function does; see src/README.md for all that is printed from cards.
//----------------------------------------------------------------------------------------------------------------------

#if defined(OPDI_OPERATORS)

#define OPDI_OP(name) OPDI_INTERNAL void opdi_card_##name(opd_op_desc *op)
#endif
