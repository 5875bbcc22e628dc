//----------------------------------------------------------------------------------------------------------------------
//  >>operators    operator descriptors: everything about one operator in one place
//
//  Each OPDI_OP(name) { .. } fills in an opd_op_desc, also called the card of the operator.  Kernels make results by
//  opd_result, and backward functions call public operators.  The comment above an OPDI_OP describes its typed
//  function; src/README.md lists everything that is generated from the descriptors.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_OP(name) OPDI_INTERNAL void opdi_card_##name(opd_op_desc *op)
