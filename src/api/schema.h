//----------------------------------------------------------------------------------------------------------------------
//  >>api:schema     operator schemas
//----------------------------------------------------------------------------------------------------------------------

/* Parses a schema such as "ns::name.overload(Tensor self, int dim=0) -> Tensor" (torch._C.parse_schema).  >>schema
   lists the deliberate differences.  The caller frees the schema.  If the text is not valid, returns NULL and sets an
   error with line, column and a caret. */
OPD_API opd_schema *opd_schema_parse(const char *text);
OPD_API void opd_schema_free(opd_schema *schema);
/* Writes the schema in PyTorch's form into buf, cut to `cap` bytes including the final zero.  Returns the full
   length. */
OPD_API size_t opd_schema_print(const opd_schema *schema, char *buf, size_t cap);
/* opd_schema_nargs and opd_schema_nreturns return the numbers of arguments and of results.  opd_schema_arg_name returns
   the name of argument i, which lives as long as the schema. */
OPD_API int opd_schema_nargs(const opd_schema *schema);
OPD_API int opd_schema_nreturns(const opd_schema *schema);
OPD_API const char *opd_schema_arg_name(const opd_schema *schema, int i);
/* opd_schema_equal returns true if names, arguments (name, type, the length N of a list type int[N], default,
   keyword-only, annotation) and returns are equal.  SymInt and int are one type.  opd_schema_hash returns equal hashes
   for equal schemas. */
OPD_API bool opd_schema_equal(const opd_schema *schema, const opd_schema *other);
OPD_API uint64_t opd_schema_hash(const opd_schema *schema);
/* opd_schema_is_backward_compatible_with: Returns true if every call of `old` is also a call of `schema`.
   opd_schema_is_forward_compatible_with: Returns true if every call of `schema` that uses nothing new in it is also a
   call of `old`.  If the result is false, the reason is written to `why` (cut to `cap` bytes including the final zero).
   `why` may be NULL. */
OPD_API bool opd_schema_is_backward_compatible_with(const opd_schema *schema, const opd_schema *old, char *why,
                                                    size_t cap);
OPD_API bool opd_schema_is_forward_compatible_with(const opd_schema *schema, const opd_schema *old, char *why,
                                                   size_t cap);
/* Returns true if schema can be used where other is expected.  Each argument of schema must accept at least the types
   that other's argument of the same name accepts.  Each result must be of other's type or a subtype.  If as_method is
   true, the first argument (self) is not compared. */
OPD_API bool opd_schema_is_subtype_of(const opd_schema *schema, const opd_schema *other, bool as_method);

/* Returns true if the schema marks an argument as written: Tensor(a!). */
OPD_API bool opd_schema_is_mutable(const opd_schema *schema);
/* Queries about aliases.  `place` is an argument (0, 1, ...) or a result (OPD_RESULT(0), ...).  `values` has one value
   for each argument, OPD_DEFAULT if it is unknown, or is NULL.  Tensors in `values` with the same storage are aliases.
   A flag such as `training` in `values` decides whether running statistics are written.  If a place does not exist, the
   functions return false and set an error.
   opd_schema_is_mutable_at: Returns true if the argument or result at `place` is written.
   opd_schema_is_aliasing: Returns true if the argument or result at `place` has an alias annotation.
   opd_schema_may_alias: Returns true if the places `first` and `second` may be aliases. */
#define OPD_RESULT(j) (-1 - (j))
OPD_API bool opd_schema_is_mutable_at(const opd_schema *schema, int place, const opd_value *values);
OPD_API bool opd_schema_is_aliasing(const opd_schema *schema, int place);
OPD_API bool opd_schema_may_alias(const opd_schema *schema, int first, int second, const opd_value *values);
/* Returns true if the places `first` and `second` may be aliases, or if an element of `first` may be an alias of
   `second` or of an element of `second`.  If both_ways is true, also returns true if an element of `second` may be an
   alias of `first`. */
OPD_API bool opd_schema_may_contain_alias(const opd_schema *schema, int first, int second, bool both_ways,
                                          const opd_value *values);
/* Returns true if the schema's operator is tagged as random (NONDETERMINISTIC_SEEDED).  If `values` has a false
   `train` or `training`, or a `dropout` or `dropout_p` of 0, returns false.  If the program does not contain the
   built-in operator (OPD_LEAN without OPD_KEEP, or OPD_NO_...), returns false and sets an error. */
OPD_API bool opd_schema_is_nondeterministic(const opd_schema *schema, const opd_value *values);

