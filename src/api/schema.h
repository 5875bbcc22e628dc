//----------------------------------------------------------------------------------------------------------------------
//  >>api:schema     operator schemas
//----------------------------------------------------------------------------------------------------------------------

/* Parses "ns::name.overload(Tensor self, int dim=0) -> Tensor" (torch._C.parse_schema; >>schema lists the
   deliberate differences).  NULL with an error that has line, column and a caret.  The caller frees it. */
OPD_API opd_schema *opd_schema_parse(const char *text);
OPD_API void opd_schema_free(opd_schema *schema);
/* Writes the schema as PyTorch prints it, cut to cap bytes with the zero; returns the full length. */
OPD_API size_t opd_schema_print(const opd_schema *schema, char *buf, size_t cap);
OPD_API int opd_schema_nargs(const opd_schema *schema);
OPD_API int opd_schema_nreturns(const opd_schema *schema);
OPD_API const char *opd_schema_arg_name(const opd_schema *schema, int i);
/* Equal: names, arguments (name, type, N, default, keyword-only, annotation), returns.  SymInt and int are one type.
   Equal schemas have equal hashes. */
OPD_API bool opd_schema_equal(const opd_schema *schema, const opd_schema *other);
OPD_API uint64_t opd_schema_hash(const opd_schema *schema);
/* The first: true when every call of `old` is a call of `schema` too; the second: true when every call of `schema` that
   uses nothing new in it is a call of `old` too.  When not, `why` says what is in the way (cut to cap bytes with the
   zero; NULL: not asked for). */
OPD_API bool opd_schema_is_backward_compatible_with(const opd_schema *schema, const opd_schema *old, char *why,
                                                    size_t cap);
OPD_API bool opd_schema_is_forward_compatible_with(const opd_schema *schema, const opd_schema *old, char *why,
                                                   size_t cap);
/* True when schema may stand where other is asked for: arguments of the same names take at least what other's take,
   results are at most what other's are.  as_method skips the first argument. */
OPD_API bool opd_schema_is_subtype_of(const opd_schema *schema, const opd_schema *other, bool as_method);

/* True when an argument is annotated as written, e.g. Tensor(a!). */
OPD_API bool opd_schema_is_mutable(const opd_schema *schema);
/* Alias questions.  A place is an argument (0, 1, ...) or a result, OPD_RESULT(0), ...  `values`: one for each
   argument, OPD_DEFAULT where unknown, or NULL; tensors with the same storage then are aliases, and a flag like
   `training` tells whether running statistics are written.  A place that is not there is an error, the answer false. */
#define OPD_RESULT(j) (-1 - (j))
OPD_API bool opd_schema_is_mutable_at(const opd_schema *schema, int place, const opd_value *values);
OPD_API bool opd_schema_is_aliasing(const opd_schema *schema, int place);          /* it has an annotation */
OPD_API bool opd_schema_may_alias(const opd_schema *schema, int first, int second, const opd_value *values);
/* True when something in `first` may be `second`, or something in it; both_ways: or something in `second` may be
   `first`. */
OPD_API bool opd_schema_may_contain_alias(const opd_schema *schema, int first, int second, bool both_ways,
                                          const opd_value *values);
/* True when the operator of that name draws random numbers: its tag says so, and `train` among the values, if there, is
   not false. */
OPD_API bool opd_schema_is_nondeterministic(const opd_schema *schema, const opd_value *values);

