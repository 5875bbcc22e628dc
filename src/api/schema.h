//----------------------------------------------------------------------------------------------------------------------
//  >>api:schema     operator schemas
//----------------------------------------------------------------------------------------------------------------------

/* Parses a schema such as "ns::name.overload(Tensor self, int dim=0) -> Tensor" (torch._C.parse_schema).  >>schema
   lists the deliberate differences.  The caller frees the schema.  Returns NULL and sets an error with line, column and
   a caret. */
OPD_API opd_schema *opd_schema_parse(const char *text);
OPD_API void opd_schema_free(opd_schema *schema);
/* Writes the schema in PyTorch's form into buf, cut to `cap` bytes with its zero.  Returns the full length. */
OPD_API size_t opd_schema_print(const opd_schema *schema, char *buf, size_t cap);
OPD_API int opd_schema_nargs(const opd_schema *schema);
OPD_API int opd_schema_nreturns(const opd_schema *schema);
OPD_API const char *opd_schema_arg_name(const opd_schema *schema, int i);
/* opd_schema_equal returns true if names, arguments (name, type, N, default, keyword-only, annotation) and returns are
   equal.  SymInt and int are one type.  opd_schema_hash returns equal hashes for equal schemas. */
OPD_API bool opd_schema_equal(const opd_schema *schema, const opd_schema *other);
OPD_API uint64_t opd_schema_hash(const opd_schema *schema);
/* opd_schema_is_backward_compatible_with: Returns true if every call of `old` is also a call of `schema`.
   opd_schema_is_forward_compatible_with: Returns true if every call of `schema` that uses nothing new in it is also a
   call of `old`.  If the result is false, the reason is written to `why` (cut to `cap` bytes with its zero). `why` may
   be NULL. */
OPD_API bool opd_schema_is_backward_compatible_with(const opd_schema *schema, const opd_schema *old, char *why,
                                                    size_t cap);
OPD_API bool opd_schema_is_forward_compatible_with(const opd_schema *schema, const opd_schema *old, char *why,
                                                   size_t cap);
/* Returns true if schema can be used where other is expected.  Arguments of the same name then accept at least the
   types that other's accept, and results are at most other's types.  as_method skips the first argument. */
OPD_API bool opd_schema_is_subtype_of(const opd_schema *schema, const opd_schema *other, bool as_method);

/* Returns true if an argument is annotated as written, for example Tensor(a!). */
OPD_API bool opd_schema_is_mutable(const opd_schema *schema);
/* Questions about aliases.  place is an argument (0, 1, ...) or a result: OPD_RESULT(0), ...  `values` has one value
   for each argument, OPD_DEFAULT if unknown, or is NULL.  Tensors in values with the same storage are aliases.  A flag
   such as `training` in values decides whether running statistics are written.  A place that does not exist is an
   error, and the functions return false.
   opd_schema_is_mutable_at: Returns true if place is written.
   opd_schema_is_aliasing: Returns true if place has an alias annotation.
   opd_schema_may_alias: Returns true if places first and second may be aliases. */
#define OPD_RESULT(j) (-1 - (j))
OPD_API bool opd_schema_is_mutable_at(const opd_schema *schema, int place, const opd_value *values);
OPD_API bool opd_schema_is_aliasing(const opd_schema *schema, int place);
OPD_API bool opd_schema_may_alias(const opd_schema *schema, int first, int second, const opd_value *values);
/* Returns true if an element of `first` may be `second`, or an element of `second`.  With both_ways, also returns true
   if an element of `second` may be `first`. */
OPD_API bool opd_schema_may_contain_alias(const opd_schema *schema, int first, int second, bool both_ways,
                                          const opd_value *values);
/* Returns true if the schema's operator is tagged as drawing random numbers.  A false `train` among the values makes
   the result false. */
OPD_API bool opd_schema_is_nondeterministic(const opd_schema *schema, const opd_value *values);

