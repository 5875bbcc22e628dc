//----------------------------------------------------------------------------------------------------------------------
//  >>operators    the cards: everything about one operator in one place
//
//  Each card fills an opd_op_desc.  Kernels make results by opd_result, and backward functions call public operators.
//  The comment above a card describes its typed function; src/README.md lists everything that is printed from cards.
//----------------------------------------------------------------------------------------------------------------------

#if defined(OPDI_OPERATORS)

#define OPDI_OP(name) OPDI_INTERNAL void opdi_card_##name(opd_op_desc *op)
#endif
