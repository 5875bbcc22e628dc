//----------------------------------------------------------------------------------------------------------------------
//  >>api:operators  the built-in operators
//
//  Each has a typed function: opd_x takes the arguments that have no default, and where nobody would do without them
//  some more: the dtype of what makes a tensor of none, keepdim of a reduction, what is drawn.  opd_x_full, where that
//  is more, takes all of them; opd_x_ and opd_x_full_ are the in-place forms.  A result belongs to the innermost scope
//  and is NULL after an error; functions of several results fill rets and return 0 or -1.  A Tensor?, Generator? or
//  str? may be NULL, an optional list of ints {NULL, 0}; the dtype of those that make tensors may be OPD_DTYPE_NONE.
//  A Scalar, and other values that may be None, are opd_values: OPD_V(2), OPD_V(0.5), OPD_NONE.  The defaults are in
//  the schema, which opd_schema_print shows.  All but the comments is printed by tests/wrappers.py.
//----------------------------------------------------------------------------------------------------------------------

#ifdef __cplusplus
extern "C" {
#endif

