/* The handle of a built-in operator. */
OPD_API opd_op *opd_op_builtin(opd_op_id id);

/* Names of an older version, for one version more. */
OPD_INLINE opd_tensor *opd_normal__full(opd_tensor *self, double a, double b, opd_generator *generator) {
    return opd_normal_full_(self, a, b, generator);
}
OPD_INLINE opd_tensor *opd_uniform__full(opd_tensor *self, double a, double b, opd_generator *generator) {
    return opd_uniform_full_(self, a, b, generator);
}
OPD_INLINE opd_tensor *opd_exponential__full(opd_tensor *self, double a, opd_generator *generator) {
    return opd_exponential_full_(self, a, generator);
}
OPD_INLINE opd_tensor *opd_random__full(opd_tensor *self, opd_generator *generator) {
    return opd_random_full_(self, generator);
}
OPD_INLINE opd_tensor *opd_random_from__full(opd_tensor *self, int64_t first, opd_value second,
                                             opd_generator *generator) {
    return opd_random_from_full_(self, first, second, generator);
}
OPD_INLINE opd_tensor *opd_random_to__full(opd_tensor *self, int64_t first, opd_generator *generator) {
    return opd_random_to_full_(self, first, generator);
}
OPD_INLINE opd_tensor *opd_bernoulli__full(opd_tensor *self, double a, opd_generator *generator) {
    return opd_bernoulli_full_(self, a, generator);
}
OPD_INLINE opd_tensor *opd_bernoulli_Tensor__full(opd_tensor *self, opd_tensor *first, opd_generator *generator) {
    return opd_bernoulli_Tensor_full_(self, first, generator);
}
OPD_INLINE opd_tensor *opd_copy__full(opd_tensor *self, opd_tensor *first, bool b) {
    return opd_copy_full_(self, first, b);
}
OPD_INLINE opd_tensor *opd_as_strided__full(opd_tensor *self, opd_ints list, opd_ints ints, opd_value copy) {
    return opd_as_strided_full_(self, list, ints, copy);
}
OPD_INLINE opd_tensor *opd_resize__full(opd_tensor *self, opd_ints list, opd_value second) {
    return opd_resize_full_(self, list, second);
}
OPD_INLINE opd_tensor *opd_resize_as__full(opd_tensor *self, opd_tensor *first, opd_value second) {
    return opd_resize_as_full_(self, first, second);
}
OPD_INLINE opd_tensor *opd__index_put_impl__full(opd_tensor *self, opd_tensors list, opd_tensor *second, bool c,
                                                 bool d) {
    return opd__index_put_impl_full_(self, list, second, c, d);
}
#ifdef __cplusplus
}
#endif

