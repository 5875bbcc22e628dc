//== printed by tests/wrappers.py
OPDI_COLD_BEGIN
opd_tensor *opd_empty(opd_ints size, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_of_ints(size), opd_value_dtype(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::empty.memory_format", "TIi"), args, 2);
}
opd_tensor *opd_empty_full(opd_ints size, opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory,
                           opd_value memory_format) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_of_ints(size), dtype, layout, device, pin_memory, memory_format};
    return opd_call_op(opd_op_typed(&op, "aten::empty.memory_format", "TIVVVVV"), args, 6);
}
opd_tensor *opd_empty_strided(opd_ints size, opd_ints stride, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_of_ints(size), opd_value_of_ints(stride), opd_value_dtype(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::empty_strided", "TIIi"), args, 3);
}
opd_tensor *opd_empty_strided_full(opd_ints size, opd_ints stride, opd_value dtype, opd_value layout, opd_value device,
                                   opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_of_ints(size), opd_value_of_ints(stride), dtype, layout, device, pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::empty_strided", "TIIVVVV"), args, 6);
}
opd_tensor *opd_zeros(opd_ints size, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_of_ints(size), opd_value_dtype(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::zeros", "TIi"), args, 2);
}
opd_tensor *opd_ones(opd_ints size, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_of_ints(size), opd_value_dtype(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::ones", "TIi"), args, 2);
}
opd_tensor *opd_ones_full(opd_ints size, opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_of_ints(size), dtype, layout, device, pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::ones", "TIVVVV"), args, 5);
}
opd_tensor *opd_full(opd_ints size, opd_value fill_value, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_of_ints(size), fill_value, opd_value_dtype(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::full", "TIVi"), args, 3);
}
opd_tensor *opd_empty_like(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::empty_like", "TT"), args, 1);
}
opd_tensor *opd_zeros_like(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::zeros_like", "TT"), args, 1);
}
opd_tensor *opd_zeros_like_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), dtype, layout, device, pin_memory, memory_format};
    return opd_call_op(opd_op_typed(&op, "aten::zeros_like", "TTVVVVV"), args, 6);
}
opd_tensor *opd_ones_like(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::ones_like", "TT"), args, 1);
}
opd_tensor *opd_ones_like_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                               opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), dtype, layout, device, pin_memory, memory_format};
    return opd_call_op(opd_op_typed(&op, "aten::ones_like", "TTVVVVV"), args, 6);
}
opd_tensor *opd_full_like(opd_tensor *self, opd_value fill_value) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), fill_value};
    return opd_call_op(opd_op_typed(&op, "aten::full_like", "TTV"), args, 2);
}
opd_tensor *opd_new_empty(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(size)};
    return opd_call_op(opd_op_typed(&op, "aten::new_empty", "TTI"), args, 2);
}
opd_tensor *opd_new_empty_full(opd_tensor *self, opd_ints size, opd_value dtype, opd_value layout, opd_value device,
                               opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_of_ints(size), dtype, layout, device, pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::new_empty", "TTIVVVV"), args, 6);
}
opd_tensor *opd_new_empty_strided(opd_tensor *self, opd_ints size, opd_ints stride) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_of_ints(size), opd_value_of_ints(stride)};
    return opd_call_op(opd_op_typed(&op, "aten::new_empty_strided", "TTII"), args, 3);
}
opd_tensor *opd_new_zeros(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(size)};
    return opd_call_op(opd_op_typed(&op, "aten::new_zeros", "TTI"), args, 2);
}
opd_tensor *opd_new_zeros_full(opd_tensor *self, opd_ints size, opd_value dtype, opd_value layout, opd_value device,
                               opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_of_ints(size), dtype, layout, device, pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::new_zeros", "TTIVVVV"), args, 6);
}
opd_tensor *opd_new_ones(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(size)};
    return opd_call_op(opd_op_typed(&op, "aten::new_ones", "TTI"), args, 2);
}
opd_tensor *opd_new_full(opd_tensor *self, opd_ints size, opd_value fill_value) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_of_ints(size), fill_value};
    return opd_call_op(opd_op_typed(&op, "aten::new_full", "TTIV"), args, 3);
}
opd_tensor *opd_new_full_full(opd_tensor *self, opd_ints size, opd_value fill_value, opd_value dtype, opd_value layout,
                              opd_value device, opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_tensor(self), opd_value_of_ints(size), fill_value, dtype, layout, device,
                              pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::new_full", "TTIVVVVV"), args, 7);
}
opd_tensor *opd_scalar_tensor(opd_value s, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[2] = {s, opd_value_dtype(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::scalar_tensor", "TVi"), args, 2);
}
opd_tensor *opd_scalar_tensor_full(opd_value s, opd_value dtype, opd_value layout, opd_value device,
                                   opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[5] = {s, dtype, layout, device, pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::scalar_tensor", "TVVVVV"), args, 5);
}
opd_tensor *opd_fill_(opd_tensor *self, opd_value value) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), value};
    return opd_call_op(opd_op_typed(&op, "aten::fill_.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_zero_(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::zero_", "TT"), args, 1);
}
opd_tensor *opd_arange(opd_value end, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[2] = {end, opd_value_dtype(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::arange", "TVi"), args, 2);
}
opd_tensor *opd_arange_full(opd_value end, opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[5] = {end, dtype, layout, device, pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::arange", "TVVVVV"), args, 5);
}
opd_tensor *opd_arange_start_full(opd_value start, opd_value end, opd_value dtype, opd_value layout, opd_value device,
                                  opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[6] = {start, end, dtype, layout, device, pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::arange.start", "TVVVVVV"), args, 6);
}
opd_tensor *opd_arange_start_step(opd_value start, opd_value end, opd_value step, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[4] = {start, end, step, opd_value_dtype(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::arange.start_step", "TVVVi"), args, 4);
}
opd_tensor *opd_linspace_full(opd_value start, opd_value end, int64_t steps, opd_value dtype, opd_value layout,
                              opd_value device, opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[7] = {start, end, opd_value_int(steps), dtype, layout, device, pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::linspace", "TVViVVVV"), args, 7);
}
opd_tensor *opd_eye_m(int64_t n, int64_t m, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_int(n), opd_value_int(m), opd_value_dtype(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::eye.m", "Tiii"), args, 3);
}
opd_tensor *opd_tril(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::tril", "TT"), args, 1);
}
opd_tensor *opd_tril_full(opd_tensor *self, int64_t diagonal) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(diagonal)};
    return opd_call_op(opd_op_typed(&op, "aten::tril", "TTi"), args, 2);
}
opd_tensor *opd_triu(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::triu", "TT"), args, 1);
}
opd_tensor *opd_triu_full(opd_tensor *self, int64_t diagonal) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(diagonal)};
    return opd_call_op(opd_op_typed(&op, "aten::triu", "TTi"), args, 2);
}
opd_tensor *opd_triu_indices_full(int64_t row, int64_t col, int64_t offset, opd_value dtype, opd_value layout,
                                  opd_value device, opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_int(row), opd_value_int(col), opd_value_int(offset), dtype, layout, device,
                              pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::triu_indices", "TiiiVVVV"), args, 7);
}
opd_tensor *opd_rand_generator_full(opd_ints size, opd_generator *generator, opd_value dtype, opd_value layout,
                                    opd_value device, opd_value pin_memory) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_of_ints(size), opd_value_generator(generator), dtype, layout, device,
                              pin_memory};
    return opd_call_op(opd_op_typed(&op, "aten::rand.generator", "TIGVVVV"), args, 6);
}
opd_tensor *opd_randperm(int64_t n, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_int(n), opd_value_dtype(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::randperm", "Tii"), args, 2);
}
opd_tensor *opd_randn_like(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::randn_like", "TT"), args, 1);
}
opd_tensor *opd_normal_(opd_tensor *self, double mean, double std) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_float(mean), opd_value_float(std)};
    return opd_call_op(opd_op_typed(&op, "aten::normal_", "TTdd"), args, 3);
}
opd_tensor *opd_uniform_(opd_tensor *self, double from, double to) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_float(from), opd_value_float(to)};
    return opd_call_op(opd_op_typed(&op, "aten::uniform_", "TTdd"), args, 3);
}
opd_tensor *opd_uniform_full_(opd_tensor *self, double from, double to, opd_generator *generator) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_float(from), opd_value_float(to),
                              opd_value_generator(generator)};
    return opd_call_op(opd_op_typed(&op, "aten::uniform_", "TTddG"), args, 4);
}
opd_tensor *opd_exponential_full_(opd_tensor *self, double lambd, opd_generator *generator) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_float(lambd), opd_value_generator(generator)};
    return opd_call_op(opd_op_typed(&op, "aten::exponential_", "TTdG"), args, 3);
}
opd_tensor *opd_bernoulli_p(opd_tensor *self, double p) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_float(p)};
    return opd_call_op(opd_op_typed(&op, "aten::bernoulli.p", "TTd"), args, 2);
}
opd_tensor *opd_view(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(size)};
    return opd_call_op(opd_op_typed(&op, "aten::view", "TTI"), args, 2);
}
opd_tensor *opd_unsafe_view(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(size)};
    return opd_call_op(opd_op_typed(&op, "aten::_unsafe_view", "TTI"), args, 2);
}
opd_tensor *opd_reshape(opd_tensor *self, opd_ints shape) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(shape)};
    return opd_call_op(opd_op_typed(&op, "aten::reshape", "TTI"), args, 2);
}
opd_tensor *opd_expand(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(size)};
    return opd_call_op(opd_op_typed(&op, "aten::expand", "TTI"), args, 2);
}
opd_tensor *opd_transpose(opd_tensor *self, int64_t dim0, int64_t dim1) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim0), opd_value_int(dim1)};
    return opd_call_op(opd_op_typed(&op, "aten::transpose.int", "TTii"), args, 3);
}
opd_tensor *opd_t(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::t", "TT"), args, 1);
}
opd_tensor *opd_permute(opd_tensor *self, opd_ints dims) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(dims)};
    return opd_call_op(opd_op_typed(&op, "aten::permute", "TTI"), args, 2);
}
opd_tensor *opd_select(opd_tensor *self, int64_t dim, int64_t index) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_int(index)};
    return opd_call_op(opd_op_typed(&op, "aten::select.int", "TTii"), args, 3);
}
opd_tensor *opd_slice(opd_tensor *self, int64_t dim, opd_value start, opd_value end, int64_t step) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_int(dim), start, end, opd_value_int(step)};
    return opd_call_op(opd_op_typed(&op, "aten::slice.Tensor", "TTiVVi"), args, 5);
}
opd_tensor *opd_unsqueeze(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::unsqueeze", "TTi"), args, 2);
}
opd_tensor *opd_squeeze(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::squeeze", "TT"), args, 1);
}
opd_tensor *opd_squeeze_dim(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::squeeze.dim", "TTi"), args, 2);
}
opd_tensor *opd_squeeze_dims(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::squeeze.dims", "TTI"), args, 2);
}
opd_tensor *opd_detach(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::detach", "TT"), args, 1);
}
opd_tensor *opd_alias(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::alias", "TT"), args, 1);
}
opd_tensor *opd_as_strided_full(opd_tensor *self, opd_ints size, opd_ints stride, opd_value storage_offset) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_of_ints(size), opd_value_of_ints(stride),
                              storage_offset};
    return opd_call_op(opd_op_typed(&op, "aten::as_strided", "TTIIV"), args, 4);
}
opd_tensor *opd_select_backward(opd_tensor *grad_output, opd_ints input_sizes, int64_t dim, int64_t index) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(grad_output), opd_value_of_ints(input_sizes), opd_value_int(dim),
                              opd_value_int(index)};
    return opd_call_op(opd_op_typed(&op, "aten::select_backward", "TTIii"), args, 4);
}
opd_tensor *opd_slice_backward(opd_tensor *grad_output, opd_ints input_sizes, int64_t dim, int64_t start, int64_t end,
                               int64_t step) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(grad_output), opd_value_of_ints(input_sizes), opd_value_int(dim),
                              opd_value_int(start), opd_value_int(end), opd_value_int(step)};
    return opd_call_op(opd_op_typed(&op, "aten::slice_backward", "TTIiiii"), args, 6);
}
opd_tensor *opd_as_strided_backward(opd_tensor *grad_output, opd_ints input_sizes, opd_ints input_strides,
                                    opd_ints size, opd_ints stride, int64_t storage_offset) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(grad_output), opd_value_of_ints(input_sizes),
                              opd_value_of_ints(input_strides), opd_value_of_ints(size), opd_value_of_ints(stride),
                              opd_value_int(storage_offset)};
    return opd_call_op(opd_op_typed(&op, "aten::as_strided_backward", "TTIIIIi"), args, 6);
}
opd_tensor *opd_flatten(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::flatten.using_ints", "TT"), args, 1);
}
opd_tensor *opd_flatten_full(opd_tensor *self, int64_t start_dim, int64_t end_dim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(start_dim), opd_value_int(end_dim)};
    return opd_call_op(opd_op_typed(&op, "aten::flatten.using_ints", "TTii"), args, 3);
}
opd_tensor *opd_expand_as(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::expand_as", "TTT"), args, 2);
}
opd_tensor *opd_copy_(opd_tensor *self, opd_tensor *src) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(src)};
    return opd_call_op(opd_op_typed(&op, "aten::copy_", "TTT"), args, 2);
}
opd_tensor *opd_copy(opd_tensor *self, opd_tensor *src) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(src)};
    return opd_call_op(opd_op_typed(&op, "aten::copy", "TTT"), args, 2);
}
opd_tensor *opd_copy_full(opd_tensor *self, opd_tensor *src, bool non_blocking) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(src), opd_value_bool(non_blocking)};
    return opd_call_op(opd_op_typed(&op, "aten::copy", "TTTb"), args, 3);
}
opd_tensor *opd_clone(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::clone", "TT"), args, 1);
}
opd_tensor *opd_clone_full(opd_tensor *self, opd_value memory_format) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), memory_format};
    return opd_call_op(opd_op_typed(&op, "aten::clone", "TTV"), args, 2);
}
opd_tensor *opd_to_copy_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                             opd_value pin_memory, bool non_blocking, opd_value memory_format) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_tensor(self), dtype, layout, device, pin_memory, opd_value_bool(non_blocking),
                              memory_format};
    return opd_call_op(opd_op_typed(&op, "aten::_to_copy", "TTVVVVbV"), args, 7);
}
opd_tensor *opd_contiguous(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::contiguous", "TT"), args, 1);
}
opd_tensor *opd_to_dtype(opd_tensor *self, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::to.dtype", "TTi"), args, 2);
}
opd_tensor *opd_to_dtype_full(opd_tensor *self, opd_scalar_type dtype, bool non_blocking, bool copy,
                              opd_value memory_format) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_int(dtype), opd_value_bool(non_blocking),
                              opd_value_bool(copy), memory_format};
    return opd_call_op(opd_op_typed(&op, "aten::to.dtype", "TTibbV"), args, 5);
}
opd_value opd_local_scalar_dense(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_value(opd_op_typed(&op, "aten::_local_scalar_dense", "VT"), args, 1);
}
opd_value opd_item(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_value(opd_op_typed(&op, "aten::item", "VT"), args, 1);
}
opd_tensor *opd_diagonal(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::diagonal", "TT"), args, 1);
}
opd_tensor *opd_diagonal_full(opd_tensor *self, int64_t offset, int64_t dim1, int64_t dim2) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(offset), opd_value_int(dim1), opd_value_int(dim2)};
    return opd_call_op(opd_op_typed(&op, "aten::diagonal", "TTiii"), args, 4);
}
opd_tensor *opd_diagonal_backward(opd_tensor *grad_output, opd_ints input_sizes, int64_t offset, int64_t dim1,
                                  int64_t dim2) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(grad_output), opd_value_of_ints(input_sizes), opd_value_int(offset),
                              opd_value_int(dim1), opd_value_int(dim2)};
    return opd_call_op(opd_op_typed(&op, "aten::diagonal_backward", "TTIiii"), args, 5);
}
opd_tensor *opd_unfold(opd_tensor *self, int64_t dimension, int64_t size, int64_t step) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(dimension), opd_value_int(size),
                              opd_value_int(step)};
    return opd_call_op(opd_op_typed(&op, "aten::unfold", "TTiii"), args, 4);
}
opd_tensor *opd_unfold_backward(opd_tensor *grad_in, opd_ints input_sizes, int64_t dim, int64_t size, int64_t step) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(grad_in), opd_value_of_ints(input_sizes), opd_value_int(dim),
                              opd_value_int(size), opd_value_int(step)};
    return opd_call_op(opd_op_typed(&op, "aten::unfold_backward", "TTIiii"), args, 5);
}
opd_tensors opd_split_with_sizes_full(opd_tensor *self, opd_ints split_sizes, int64_t dim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_of_ints(split_sizes), opd_value_int(dim)};
    return opd_call_list(opd_op_typed(&op, "aten::split_with_sizes", "LTIi"), args, 3);
}
opd_tensors opd_split_full(opd_tensor *self, int64_t split_size, int64_t dim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(split_size), opd_value_int(dim)};
    return opd_call_list(opd_op_typed(&op, "aten::split.Tensor", "LTii"), args, 3);
}
opd_tensors opd_unbind_full(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(dim)};
    return opd_call_list(opd_op_typed(&op, "aten::unbind.int", "LTi"), args, 2);
}
opd_tensor *opd_narrow(opd_tensor *self, int64_t dim, int64_t start, int64_t length) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(dim), opd_value_int(start), opd_value_int(length)};
    return opd_call_op(opd_op_typed(&op, "aten::narrow", "TTiii"), args, 4);
}
opd_tensor *opd_movedim(opd_tensor *self, int64_t source, int64_t destination) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(source), opd_value_int(destination)};
    return opd_call_op(opd_op_typed(&op, "aten::movedim.int", "TTii"), args, 3);
}
opd_tensor *opd_movedim_intlist(opd_tensor *self, opd_ints source, opd_ints destination) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_of_ints(source), opd_value_of_ints(destination)};
    return opd_call_op(opd_op_typed(&op, "aten::movedim.intlist", "TTII"), args, 3);
}
opd_tensor *opd_mT(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::mT", "TT"), args, 1);
}
opd_tensor *opd_unflatten(opd_tensor *self, int64_t dim, opd_ints sizes) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_of_ints(sizes)};
    return opd_call_op(opd_op_typed(&op, "aten::unflatten.int", "TTiI"), args, 3);
}
opd_tensor *opd_ravel(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::ravel", "TT"), args, 1);
}
opd_tensors opd_meshgrid(opd_tensors tensors) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_of_tensors(tensors)};
    return opd_call_list(opd_op_typed(&op, "aten::meshgrid", "LL"), args, 1);
}
opd_tensor *opd_to_device(opd_tensor *self, opd_device device, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_device(device), opd_value_int(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::to.device", "TTDi"), args, 3);
}
opd_tensor *opd_to_device_full(opd_tensor *self, opd_device device, opd_scalar_type dtype, bool non_blocking, bool copy,
                               opd_value memory_format) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_device(device), opd_value_int(dtype),
                              opd_value_bool(non_blocking), opd_value_bool(copy), memory_format};
    return opd_call_op(opd_op_typed(&op, "aten::to.device", "TTDibbV"), args, 6);
}
opd_tensor *opd_repeat(opd_tensor *self, opd_ints repeats) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(repeats)};
    return opd_call_op(opd_op_typed(&op, "aten::repeat", "TTI"), args, 2);
}
opd_tensor *opd_flip(opd_tensor *self, opd_ints dims) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(dims)};
    return opd_call_op(opd_op_typed(&op, "aten::flip", "TTI"), args, 2);
}
opd_tensor *opd_roll_full(opd_tensor *self, opd_ints shifts, opd_ints dims) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_of_ints(shifts), opd_value_of_ints(dims)};
    return opd_call_op(opd_op_typed(&op, "aten::roll", "TTII"), args, 3);
}
opd_tensor *opd_resize_(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(size)};
    return opd_call_op(opd_op_typed(&op, "aten::resize_", "TTI"), args, 2);
}
opd_value opd_storage_offset(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_value(opd_op_typed(&op, "aten::storage_offset", "VT"), args, 1);
}
int opd_assert_async_msg(opd_tensor *self, const char *assert_msg) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_str(assert_msg)};
    return opd_call_all(opd_op_typed(&op, "aten::_assert_async.msg", "vTs"), NULL, args, 2);
}
opd_tensor *opd_diagonal_copy_full(opd_tensor *self, int64_t offset, int64_t dim1, int64_t dim2) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(offset), opd_value_int(dim1), opd_value_int(dim2)};
    return opd_call_op(opd_op_typed(&op, "aten::diagonal_copy", "TTiii"), args, 4);
}
opd_tensor *opd_view_as_real(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::view_as_real", "TT"), args, 1);
}
opd_tensor *opd_view_as_complex(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::view_as_complex", "TT"), args, 1);
}
opd_tensor *opd_real(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::real", "TT"), args, 1);
}
opd_tensor *opd_imag(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::imag", "TT"), args, 1);
}
opd_tensor *opd_conj_copy(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::_conj_physical", "TT"), args, 1);
}
opd_tensor *opd_conj_physical(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::conj_physical", "TT"), args, 1);
}
opd_tensor *opd_conj(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::conj", "TT"), args, 1);
}
opd_tensor *opd_conj_view(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::_conj", "TT"), args, 1);
}
opd_tensor *opd__neg_view(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::_neg_view", "TT"), args, 1);
}
opd_tensor *opd_resolve_conj(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::resolve_conj", "TT"), args, 1);
}
opd_tensor *opd_resolve_neg(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::resolve_neg", "TT"), args, 1);
}
opd_tensor *opd_complex(opd_tensor *real, opd_tensor *imag) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(real), opd_value_tensor(imag)};
    return opd_call_op(opd_op_typed(&op, "aten::complex", "TTT"), args, 2);
}
opd_tensor *opd_isreal(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::isreal", "TT"), args, 1);
}
opd_tensor *opd_diag_embed(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::diag_embed", "TT"), args, 1);
}
opd_tensor *opd_diag_embed_full(opd_tensor *self, int64_t offset, int64_t dim1, int64_t dim2) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(offset), opd_value_int(dim1), opd_value_int(dim2)};
    return opd_call_op(opd_op_typed(&op, "aten::diag_embed", "TTiii"), args, 4);
}
opd_tensor *opd_exp(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::exp", "TT"), args, 1);
}
opd_tensor *opd_exp2(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::exp2", "TT"), args, 1);
}
opd_tensor *opd_log(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::log", "TT"), args, 1);
}
opd_tensor *opd_log2(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::log2", "TT"), args, 1);
}
opd_tensor *opd_log1p(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::log1p", "TT"), args, 1);
}
opd_tensor *opd_sqrt(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::sqrt", "TT"), args, 1);
}
opd_tensor *opd_rsqrt(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::rsqrt", "TT"), args, 1);
}
opd_tensor *opd_reciprocal(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::reciprocal", "TT"), args, 1);
}
opd_tensor *opd_square(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::square", "TT"), args, 1);
}
opd_tensor *opd_sin(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::sin", "TT"), args, 1);
}
opd_tensor *opd_cos(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::cos", "TT"), args, 1);
}
opd_tensor *opd_sinh(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::sinh", "TT"), args, 1);
}
opd_tensor *opd_cosh(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::cosh", "TT"), args, 1);
}
opd_tensor *opd_tanh(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::tanh", "TT"), args, 1);
}
opd_tensor *opd_erfc(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::erfc", "TT"), args, 1);
}
opd_tensor *opd_sigmoid(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::sigmoid", "TT"), args, 1);
}
opd_tensor *opd_floor(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::floor", "TT"), args, 1);
}
opd_tensor *opd_sign(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::sign", "TT"), args, 1);
}
opd_tensor *opd_abs(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::abs", "TT"), args, 1);
}
opd_tensor *opd_hardswish(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::hardswish", "TT"), args, 1);
}
opd_tensor *opd_ceil(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::ceil", "TT"), args, 1);
}
opd_tensor *opd_round(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::round", "TT"), args, 1);
}
opd_tensor *opd_trunc(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::trunc", "TT"), args, 1);
}
opd_tensor *opd_sgn(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::sgn", "TT"), args, 1);
}
opd_tensor *opd_isnan(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::isnan", "TT"), args, 1);
}
opd_tensor *opd_isinf(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::isinf", "TT"), args, 1);
}
opd_tensor *opd_isfinite(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::isfinite", "TT"), args, 1);
}
opd_tensor *opd_logical_not(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::logical_not", "TT"), args, 1);
}
opd_tensor *opd_neg(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::neg", "TT"), args, 1);
}
opd_tensor *opd_relu(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::relu", "TT"), args, 1);
}
opd_tensor *opd_silu(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::silu", "TT"), args, 1);
}
opd_tensor *opd_clamp_full(opd_tensor *self, opd_value min, opd_value max) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), min, max};
    return opd_call_op(opd_op_typed(&op, "aten::clamp", "TTVV"), args, 3);
}
opd_tensor *opd_clamp_min(opd_tensor *self, opd_value min) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), min};
    return opd_call_op(opd_op_typed(&op, "aten::clamp_min", "TTV"), args, 2);
}
opd_tensor *opd_clamp_max(opd_tensor *self, opd_value max) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), max};
    return opd_call_op(opd_op_typed(&op, "aten::clamp_max", "TTV"), args, 2);
}
opd_tensor *opd_relu6(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::relu6", "TT"), args, 1);
}
opd_tensor *opd_gelu(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::gelu", "TT"), args, 1);
}
opd_tensor *opd_leaky_relu_full(opd_tensor *self, opd_value negative_slope) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), negative_slope};
    return opd_call_op(opd_op_typed(&op, "aten::leaky_relu", "TTV"), args, 2);
}
opd_tensor *opd_elu_full(opd_tensor *self, opd_value alpha, opd_value scale, opd_value input_scale) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), alpha, scale, input_scale};
    return opd_call_op(opd_op_typed(&op, "aten::elu", "TTVVV"), args, 4);
}
opd_tensor *opd_celu_full(opd_tensor *self, opd_value alpha) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), alpha};
    return opd_call_op(opd_op_typed(&op, "aten::celu", "TTV"), args, 2);
}
opd_tensor *opd_softplus(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::softplus", "TT"), args, 1);
}
opd_tensor *opd_softshrink_backward(opd_tensor *grad_output, opd_tensor *self, opd_value lambd) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(grad_output), opd_value_tensor(self), lambd};
    return opd_call_op(opd_op_typed(&op, "aten::softshrink_backward", "TTTV"), args, 3);
}
opd_tensor *opd_hardshrink_backward(opd_tensor *grad_out, opd_tensor *self, opd_value lambd) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(grad_out), opd_value_tensor(self), lambd};
    return opd_call_op(opd_op_typed(&op, "aten::hardshrink_backward", "TTTV"), args, 3);
}
opd_tensor *opd_nan_to_num_full(opd_tensor *self, opd_value nan, opd_value posinf, opd_value neginf) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), nan, posinf, neginf};
    return opd_call_op(opd_op_typed(&op, "aten::nan_to_num", "TTVVV"), args, 4);
}
opd_tensor *opd_logit_backward_full(opd_tensor *grad_output, opd_tensor *self, opd_value eps) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(grad_output), opd_value_tensor(self), eps};
    return opd_call_op(opd_op_typed(&op, "aten::logit_backward", "TTTV"), args, 3);
}
opd_tensor *opd_add(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::add.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_add_full(opd_tensor *self, opd_tensor *other, opd_value alpha) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(other), alpha};
    return opd_call_op(opd_op_typed(&op, "aten::add.Tensor", "TTTV"), args, 3);
}
opd_tensor *opd_add_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::add_.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_add_full_(opd_tensor *self, opd_tensor *other, opd_value alpha) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(other), alpha};
    return opd_call_op(opd_op_typed(&op, "aten::add_.Tensor", "TTTV"), args, 3);
}
opd_tensor *opd_add_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::add.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_sub(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::sub.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_sub_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::sub_.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_sub_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::sub.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_rsub_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::rsub.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_mul(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::mul.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_mul_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::mul_.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_mul_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::mul.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_mul_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::mul_.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_div(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::div.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_div_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::div_.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_div_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::div.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_div_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::div_.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_div_Tensor_mode(opd_tensor *self, opd_tensor *other, const char *rounding_mode) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(other), opd_value_str(rounding_mode)};
    return opd_call_op(opd_op_typed(&op, "aten::div.Tensor_mode", "TTTs"), args, 3);
}
opd_tensor *opd_div_Scalar_mode(opd_tensor *self, opd_value other, const char *rounding_mode) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), other, opd_value_str(rounding_mode)};
    return opd_call_op(opd_op_typed(&op, "aten::div.Scalar_mode", "TTVs"), args, 3);
}
opd_tensor *opd_fmod_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::fmod.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_remainder(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::remainder.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_remainder_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::remainder.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_pow_Tensor_Tensor(opd_tensor *self, opd_tensor *exponent) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(exponent)};
    return opd_call_op(opd_op_typed(&op, "aten::pow.Tensor_Tensor", "TTT"), args, 2);
}
opd_tensor *opd_pow_Tensor_Scalar(opd_tensor *self, opd_value exponent) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), exponent};
    return opd_call_op(opd_op_typed(&op, "aten::pow.Tensor_Scalar", "TTV"), args, 2);
}
opd_tensor *opd_pow_Scalar(opd_value self, opd_tensor *exponent) {
    static opd_op *op;
    const opd_value args[2] = {self, opd_value_tensor(exponent)};
    return opd_call_op(opd_op_typed(&op, "aten::pow.Scalar", "TVT"), args, 2);
}
opd_tensor *opd_maximum(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::maximum", "TTT"), args, 2);
}
opd_tensor *opd_minimum(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::minimum", "TTT"), args, 2);
}
opd_tensor *opd_clamp_Tensor_full(opd_tensor *self, opd_tensor *min, opd_tensor *max) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(min), opd_value_tensor(max)};
    return opd_call_op(opd_op_typed(&op, "aten::clamp.Tensor", "TTTT"), args, 3);
}
opd_tensor *opd_eq(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::eq.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_eq_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::eq.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_ne(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::ne.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_ne_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::ne.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_lt(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::lt.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_lt_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::lt.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_le(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::le.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_le_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::le.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_gt(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::gt.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_gt_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::gt.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_ge(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::ge.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_ge_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::ge.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_logical_and(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::logical_and", "TTT"), args, 2);
}
opd_tensor *opd_logical_or(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::logical_or", "TTT"), args, 2);
}
opd_tensor *opd_logical_xor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::logical_xor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_and(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_and.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_and_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_and_.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_and_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_and.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_bitwise_and_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_and_.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_bitwise_or(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_or.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_or_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_or_.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_or_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_or.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_bitwise_or_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_or_.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_bitwise_xor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_xor.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_xor_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_xor_.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_xor_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_xor.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_bitwise_xor_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_xor_.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_bitwise_left_shift(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_left_shift.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_left_shift_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_left_shift_.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_left_shift_Tensor_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_left_shift.Tensor_Scalar", "TTV"), args, 2);
}
opd_tensor *opd_bitwise_left_shift_Tensor_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_left_shift_.Tensor_Scalar", "TTV"), args, 2);
}
opd_tensor *opd_bitwise_right_shift(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_right_shift.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_right_shift_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_right_shift_.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_bitwise_right_shift_Tensor_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_right_shift.Tensor_Scalar", "TTV"), args, 2);
}
opd_tensor *opd_bitwise_right_shift_Tensor_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::bitwise_right_shift_.Tensor_Scalar", "TTV"), args, 2);
}
opd_tensor *opd_atan2(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::atan2", "TTT"), args, 2);
}
opd_tensor *opd_xlogy(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::xlogy.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_copysign(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::copysign.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_where_self(opd_tensor *condition, opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(condition), opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::where.self", "TTTT"), args, 3);
}
opd_tensor *opd_where_ScalarOther(opd_tensor *condition, opd_tensor *self, opd_value other) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(condition), opd_value_tensor(self), other};
    return opd_call_op(opd_op_typed(&op, "aten::where.ScalarOther", "TTTV"), args, 3);
}
opd_tensor *opd_masked_fill_Scalar(opd_tensor *self, opd_tensor *mask, opd_value value) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(mask), value};
    return opd_call_op(opd_op_typed(&op, "aten::masked_fill.Scalar", "TTTV"), args, 3);
}
opd_tensor *opd_masked_fill_Scalar_(opd_tensor *self, opd_tensor *mask, opd_value value) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(mask), value};
    return opd_call_op(opd_op_typed(&op, "aten::masked_fill_.Scalar", "TTTV"), args, 3);
}
opd_tensor *opd_lerp_Scalar(opd_tensor *self, opd_tensor *end, opd_value weight) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(end), weight};
    return opd_call_op(opd_op_typed(&op, "aten::lerp.Scalar", "TTTV"), args, 3);
}
opd_tensor *opd_lerp(opd_tensor *self, opd_tensor *end, opd_tensor *weight) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(end), opd_value_tensor(weight)};
    return opd_call_op(opd_op_typed(&op, "aten::lerp.Tensor", "TTTT"), args, 3);
}
opd_tensor *opd_tanh_backward(opd_tensor *grad_output, opd_tensor *output) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(grad_output), opd_value_tensor(output)};
    return opd_call_op(opd_op_typed(&op, "aten::tanh_backward", "TTT"), args, 2);
}
opd_tensor *opd_sigmoid_backward(opd_tensor *grad_output, opd_tensor *output) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(grad_output), opd_value_tensor(output)};
    return opd_call_op(opd_op_typed(&op, "aten::sigmoid_backward", "TTT"), args, 2);
}
opd_tensor *opd_threshold_backward(opd_tensor *grad_output, opd_tensor *self, opd_value threshold) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(grad_output), opd_value_tensor(self), threshold};
    return opd_call_op(opd_op_typed(&op, "aten::threshold_backward", "TTTV"), args, 3);
}
opd_tensor *opd_hardtanh_backward(opd_tensor *grad_output, opd_tensor *self, opd_value min_val, opd_value max_val) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(grad_output), opd_value_tensor(self), min_val, max_val};
    return opd_call_op(opd_op_typed(&op, "aten::hardtanh_backward", "TTTVV"), args, 4);
}
opd_tensor *opd_leaky_relu_backward(opd_tensor *grad_output, opd_tensor *self, opd_value negative_slope,
                                    bool self_is_result) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(grad_output), opd_value_tensor(self), negative_slope,
                              opd_value_bool(self_is_result)};
    return opd_call_op(opd_op_typed(&op, "aten::leaky_relu_backward", "TTTVb"), args, 4);
}
opd_tensor *opd_hardsigmoid_backward(opd_tensor *grad_output, opd_tensor *self) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(grad_output), opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::hardsigmoid_backward", "TTT"), args, 2);
}
opd_tensor *opd_hardswish_backward(opd_tensor *grad_output, opd_tensor *self) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(grad_output), opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::hardswish_backward", "TTT"), args, 2);
}
opd_tensor *opd_softplus_backward(opd_tensor *grad_output, opd_tensor *self, opd_value beta, opd_value threshold) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(grad_output), opd_value_tensor(self), beta, threshold};
    return opd_call_op(opd_op_typed(&op, "aten::softplus_backward", "TTTVV"), args, 4);
}
opd_tensor *opd_silu_backward(opd_tensor *grad_output, opd_tensor *self) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(grad_output), opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::silu_backward", "TTT"), args, 2);
}
opd_tensor *opd_mish_backward(opd_tensor *grad_output, opd_tensor *self) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(grad_output), opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::mish_backward", "TTT"), args, 2);
}
opd_tensor *opd_gelu_backward_full(opd_tensor *grad_output, opd_tensor *self, const char *approximate) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_str(approximate)};
    return opd_call_op(opd_op_typed(&op, "aten::gelu_backward", "TTTs"), args, 3);
}
opd_tensor *opd_elu_backward(opd_tensor *grad_output, opd_value alpha, opd_value scale, opd_value input_scale,
                             bool is_result, opd_tensor *self_or_result) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(grad_output), alpha, scale, input_scale, opd_value_bool(is_result),
                              opd_value_tensor(self_or_result)};
    return opd_call_op(opd_op_typed(&op, "aten::elu_backward", "TTVVVbT"), args, 6);
}
opd_tensor *opd_sum(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::sum", "TT"), args, 1);
}
opd_tensor *opd_sum_dim(opd_tensor *self, opd_ints dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_optional_ints(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::sum.dim_IntList", "TTIb"), args, 3);
}
opd_tensor *opd_sum_dim_full(opd_tensor *self, opd_ints dim, bool keepdim, opd_value dtype) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_optional_ints(dim), opd_value_bool(keepdim), dtype};
    return opd_call_op(opd_op_typed(&op, "aten::sum.dim_IntList", "TTIbV"), args, 4);
}
opd_tensor *opd_nansum_full(opd_tensor *self, opd_value dim, bool keepdim, opd_value dtype) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), dim, opd_value_bool(keepdim), dtype};
    return opd_call_op(opd_op_typed(&op, "aten::nansum", "TTVbV"), args, 4);
}
opd_tensor *opd_mean(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::mean", "TT"), args, 1);
}
opd_tensor *opd_mean_dim(opd_tensor *self, opd_ints dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_optional_ints(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::mean.dim", "TTIb"), args, 3);
}
opd_tensor *opd_mean_dim_full(opd_tensor *self, opd_ints dim, bool keepdim, opd_value dtype) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_optional_ints(dim), opd_value_bool(keepdim), dtype};
    return opd_call_op(opd_op_typed(&op, "aten::mean.dim", "TTIbV"), args, 4);
}
opd_tensor *opd_prod_dim(opd_tensor *self, int64_t dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::prod.dim_int", "TTib"), args, 3);
}
opd_tensor *opd_prod_dim_full(opd_tensor *self, int64_t dim, bool keepdim, opd_value dtype) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(dim), opd_value_bool(keepdim), dtype};
    return opd_call_op(opd_op_typed(&op, "aten::prod.dim_int", "TTibV"), args, 4);
}
opd_tensor *opd_amax(opd_tensor *self, opd_ints dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_of_ints(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::amax", "TTIb"), args, 3);
}
opd_tensor *opd_amin(opd_tensor *self, opd_ints dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_of_ints(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::amin", "TTIb"), args, 3);
}
opd_tensor *opd_max(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::max", "TT"), args, 1);
}
opd_tensor *opd_min(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::min", "TT"), args, 1);
}
int opd_max_dim(opd_tensor **rets, opd_tensor *self, int64_t dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_bool(keepdim)};
    return opd_call_tensors(opd_op_typed(&op, "aten::max.dim", "NTib"), rets, args, 3);
}
opd_tensor *opd_argmax_full(opd_tensor *self, opd_value dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), dim, opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::argmax", "TTVb"), args, 3);
}
int opd_aminmax(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_tensors(opd_op_typed(&op, "aten::aminmax", "NT"), rets, args, 1);
}
opd_tensor *opd_any(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::any", "TT"), args, 1);
}
opd_tensor *opd_all(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::all", "TT"), args, 1);
}
opd_tensor *opd_any_dim(opd_tensor *self, int64_t dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::any.dim", "TTib"), args, 3);
}
opd_tensor *opd_all_dim(opd_tensor *self, int64_t dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::all.dim", "TTib"), args, 3);
}
opd_tensor *opd_any_dims(opd_tensor *self, opd_ints dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_optional_ints(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::any.dims", "TTIb"), args, 3);
}
opd_tensor *opd_all_dims(opd_tensor *self, opd_ints dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_optional_ints(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::all.dims", "TTIb"), args, 3);
}
opd_tensor *opd_linalg_vector_norm_full(opd_tensor *self, opd_value ord, opd_value dim, bool keepdim, opd_value dtype) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), ord, dim, opd_value_bool(keepdim), dtype};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_vector_norm", "TTVVbV"), args, 5);
}
opd_tensor *opd_norm_Scalar(opd_tensor *self, opd_value p) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), p};
    return opd_call_op(opd_op_typed(&op, "aten::norm.Scalar", "TTV"), args, 2);
}
opd_tensor *opd_norm_dim(opd_tensor *self, opd_value p, opd_ints dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), p, opd_value_of_ints(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::norm.ScalarOpt_dim", "TTVIb"), args, 4);
}
opd_tensor *opd_norm_dim_dtype(opd_tensor *self, opd_value p, opd_ints dim, bool keepdim, opd_scalar_type dtype) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), p, opd_value_of_ints(dim), opd_value_bool(keepdim),
                              opd_value_int(dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::norm.ScalarOpt_dim_dtype", "TTVIbi"), args, 5);
}
opd_tensor *opd_logsumexp_full(opd_tensor *self, opd_ints dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_of_ints(dim), opd_value_bool(keepdim)};
    return opd_call_op(opd_op_typed(&op, "aten::logsumexp", "TTIb"), args, 3);
}
opd_tensor *opd_trace(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::trace", "TT"), args, 1);
}
opd_value opd_equal(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_value(opd_op_typed(&op, "aten::equal", "VTT"), args, 2);
}
opd_tensor *opd_isclose_full(opd_tensor *self, opd_tensor *other, double rtol, double atol, bool equal_nan) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_tensor(other), opd_value_float(rtol),
                              opd_value_float(atol), opd_value_bool(equal_nan)};
    return opd_call_op(opd_op_typed(&op, "aten::isclose", "TTTddb"), args, 5);
}
opd_tensor *opd_nonzero(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::nonzero", "TT"), args, 1);
}
opd_tensor *opd__softmax(opd_tensor *self, int64_t dim, bool half_to_float) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_bool(half_to_float)};
    return opd_call_op(opd_op_typed(&op, "aten::_softmax", "TTib"), args, 3);
}
opd_tensor *opd__log_softmax(opd_tensor *self, int64_t dim, bool half_to_float) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_bool(half_to_float)};
    return opd_call_op(opd_op_typed(&op, "aten::_log_softmax", "TTib"), args, 3);
}
opd_tensor *opd__softmax_backward_data(opd_tensor *grad_output, opd_tensor *output, int64_t dim,
                                       opd_scalar_type input_dtype) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(grad_output), opd_value_tensor(output), opd_value_int(dim),
                              opd_value_int(input_dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::_softmax_backward_data", "TTTii"), args, 4);
}
opd_tensor *opd__log_softmax_backward_data(opd_tensor *grad_output, opd_tensor *output, int64_t dim,
                                        opd_scalar_type input_dtype) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(grad_output), opd_value_tensor(output), opd_value_int(dim),
                              opd_value_int(input_dtype)};
    return opd_call_op(opd_op_typed(&op, "aten::_log_softmax_backward_data", "TTTii"), args, 4);
}
opd_tensor *opd_softmax(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::softmax.int", "TTi"), args, 2);
}
opd_tensor *opd_softmax_full(opd_tensor *self, int64_t dim, opd_value dtype) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), dtype};
    return opd_call_op(opd_op_typed(&op, "aten::softmax.int", "TTiV"), args, 3);
}
opd_tensor *opd_log_softmax(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::log_softmax.int", "TTi"), args, 2);
}
opd_tensor *opd_diff(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::diff", "TT"), args, 1);
}
opd_tensor *opd_cumsum(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::cumsum", "TTi"), args, 2);
}
opd_tensor *opd_cumsum_full(opd_tensor *self, int64_t dim, opd_value dtype) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), dtype};
    return opd_call_op(opd_op_typed(&op, "aten::cumsum", "TTiV"), args, 3);
}
opd_tensor *opd_cumprod(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::cumprod", "TTi"), args, 2);
}
opd_tensor *opd_logcumsumexp(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::logcumsumexp", "TTi"), args, 2);
}
int opd_sort_full(opd_tensor **rets, opd_tensor *self, int64_t dim, bool descending) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_bool(descending)};
    return opd_call_tensors(opd_op_typed(&op, "aten::sort", "NTib"), rets, args, 3);
}
int opd_sort_stable(opd_tensor **rets, opd_tensor *self, opd_value stable, int64_t dim, bool descending) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), stable, opd_value_int(dim), opd_value_bool(descending)};
    return opd_call_tensors(opd_op_typed(&op, "aten::sort.stable", "NTVib"), rets, args, 4);
}
int opd_topk_full(opd_tensor **rets, opd_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_int(k), opd_value_int(dim), opd_value_bool(largest),
                              opd_value_bool(sorted)};
    return opd_call_tensors(opd_op_typed(&op, "aten::topk", "NTiibb"), rets, args, 5);
}
int opd_median_dim(opd_tensor **rets, opd_tensor *self, int64_t dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_bool(keepdim)};
    return opd_call_tensors(opd_op_typed(&op, "aten::median.dim", "NTib"), rets, args, 3);
}
int opd_nanmedian_dim(opd_tensor **rets, opd_tensor *self, int64_t dim, bool keepdim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_bool(keepdim)};
    return opd_call_tensors(opd_op_typed(&op, "aten::nanmedian.dim", "NTib"), rets, args, 3);
}
opd_tensor *opd_mm(opd_tensor *self, opd_tensor *mat2) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(mat2)};
    return opd_call_op(opd_op_typed(&op, "aten::mm", "TTT"), args, 2);
}
opd_tensor *opd_bmm(opd_tensor *self, opd_tensor *mat2) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(mat2)};
    return opd_call_op(opd_op_typed(&op, "aten::bmm", "TTT"), args, 2);
}
opd_tensor *opd_addmm(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(mat1), opd_value_tensor(mat2)};
    return opd_call_op(opd_op_typed(&op, "aten::addmm", "TTTT"), args, 3);
}
opd_tensor *opd_addmm_full(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2, opd_value beta, opd_value alpha) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_tensor(mat1), opd_value_tensor(mat2), beta, alpha};
    return opd_call_op(opd_op_typed(&op, "aten::addmm", "TTTTVV"), args, 5);
}
opd_tensor *opd_baddbmm_full(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2, opd_value beta,
                             opd_value alpha) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_tensor(batch1), opd_value_tensor(batch2), beta, alpha};
    return opd_call_op(opd_op_typed(&op, "aten::baddbmm", "TTTTVV"), args, 5);
}
opd_tensor *opd_mv(opd_tensor *self, opd_tensor *vec) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(vec)};
    return opd_call_op(opd_op_typed(&op, "aten::mv", "TTT"), args, 2);
}
opd_tensor *opd_dot(opd_tensor *self, opd_tensor *tensor) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(tensor)};
    return opd_call_op(opd_op_typed(&op, "aten::dot", "TTT"), args, 2);
}
opd_tensor *opd_vdot(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::vdot", "TTT"), args, 2);
}
opd_tensor *opd_outer(opd_tensor *self, opd_tensor *vec2) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(vec2)};
    return opd_call_op(opd_op_typed(&op, "aten::outer", "TTT"), args, 2);
}
opd_tensor *opd_matmul(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::matmul", "TTT"), args, 2);
}
opd_tensor *opd_einsum(const char *equation, opd_tensors tensors) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_str(equation), opd_value_of_tensors(tensors)};
    return opd_call_op(opd_op_typed(&op, "aten::einsum", "TsL"), args, 2);
}
opd_tensor *opd_linear(opd_tensor *input, opd_tensor *weight) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(input), opd_value_tensor(weight)};
    return opd_call_op(opd_op_typed(&op, "aten::linear", "TTT"), args, 2);
}
opd_tensor *opd_linear_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(input), opd_value_tensor(weight), opd_value_tensor(bias)};
    return opd_call_op(opd_op_typed(&op, "aten::linear", "TTTT"), args, 3);
}
opd_tensor *opd__trilinear(opd_tensor *i1, opd_tensor *i2, opd_tensor *i3, opd_ints expand1, opd_ints expand2,
                           opd_ints expand3, opd_ints sumdim) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_tensor(i1), opd_value_tensor(i2), opd_value_tensor(i3),
                              opd_value_of_ints(expand1), opd_value_of_ints(expand2), opd_value_of_ints(expand3),
                              opd_value_of_ints(sumdim)};
    return opd_call_op(opd_op_typed(&op, "aten::_trilinear", "TTTTIIII"), args, 7);
}
opd_tensor *opd_convolution(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride, opd_ints padding,
                            opd_ints dilation, bool transposed, opd_ints output_padding, int64_t groups) {
    static opd_op *op;
    const opd_value args[9] = {opd_value_tensor(input), opd_value_tensor(weight), opd_value_tensor(bias),
                              opd_value_of_ints(stride), opd_value_of_ints(padding), opd_value_of_ints(dilation),
                              opd_value_bool(transposed), opd_value_of_ints(output_padding), opd_value_int(groups)};
    return opd_call_op(opd_op_typed(&op, "aten::convolution", "TTTTIIIbIi"), args, 9);
}
int opd_convolution_backward(opd_tensor **rets, opd_tensor *grad_output, opd_tensor *input, opd_tensor *weight,
                             opd_value bias_sizes, opd_ints stride, opd_ints padding, opd_ints dilation,
                             bool transposed, opd_ints output_padding, int64_t groups, opd_value output_mask) {
    static opd_op *op;
    const opd_value args[11] = {opd_value_tensor(grad_output), opd_value_tensor(input), opd_value_tensor(weight),
                              bias_sizes, opd_value_of_ints(stride), opd_value_of_ints(padding),
                              opd_value_of_ints(dilation), opd_value_bool(transposed),
                              opd_value_of_ints(output_padding), opd_value_int(groups), output_mask};
    return opd_call_tensors(opd_op_typed(&op, "aten::convolution_backward", "NTTTVIIIbIiV"), rets, args, 11);
}
opd_tensor *opd_conv1d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride, opd_ints padding,
                            opd_ints dilation, int64_t groups) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_tensor(input), opd_value_tensor(weight), opd_value_tensor(bias),
                              opd_value_of_ints(stride), opd_value_of_ints(padding), opd_value_of_ints(dilation),
                              opd_value_int(groups)};
    return opd_call_op(opd_op_typed(&op, "aten::conv1d", "TTTTIIIi"), args, 7);
}
opd_tensor *opd_conv2d(opd_tensor *input, opd_tensor *weight) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(input), opd_value_tensor(weight)};
    return opd_call_op(opd_op_typed(&op, "aten::conv2d", "TTT"), args, 2);
}
int opd_max_pool2d_with_indices_full(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size, opd_ints stride,
                                     opd_ints padding, opd_ints dilation, bool ceil_mode) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_of_ints(kernel_size), opd_value_of_ints(stride),
                              opd_value_of_ints(padding), opd_value_of_ints(dilation), opd_value_bool(ceil_mode)};
    return opd_call_tensors(opd_op_typed(&op, "aten::max_pool2d_with_indices", "NTIIIIb"), rets, args, 6);
}
int opd_max_pool1d_with_indices_full(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size, opd_ints stride,
                                     opd_ints padding, opd_ints dilation, bool ceil_mode) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_of_ints(kernel_size), opd_value_of_ints(stride),
                              opd_value_of_ints(padding), opd_value_of_ints(dilation), opd_value_bool(ceil_mode)};
    return opd_call_tensors(opd_op_typed(&op, "aten::max_pool1d_with_indices", "NTIIIIb"), rets, args, 6);
}
opd_tensor *opd_avg_pool2d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                bool ceil_mode, bool count_include_pad, opd_value divisor_override) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_tensor(self), opd_value_of_ints(kernel_size), opd_value_of_ints(stride),
                              opd_value_of_ints(padding), opd_value_bool(ceil_mode), opd_value_bool(count_include_pad),
                              divisor_override};
    return opd_call_op(opd_op_typed(&op, "aten::avg_pool2d", "TTIIIbbV"), args, 7);
}
opd_tensor *opd_under_adaptive_avg_pool2d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(output_size)};
    return opd_call_op(opd_op_typed(&op, "aten::_adaptive_avg_pool2d", "TTI"), args, 2);
}
opd_tensor *opd_under_adaptive_avg_pool3d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(output_size)};
    return opd_call_op(opd_op_typed(&op, "aten::_adaptive_avg_pool3d", "TTI"), args, 2);
}
int opd_adaptive_max_pool2d(opd_tensor **rets, opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(output_size)};
    return opd_call_tensors(opd_op_typed(&op, "aten::adaptive_max_pool2d", "NTI"), rets, args, 2);
}
opd_tensor *opd_adaptive_avg_pool2d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(output_size)};
    return opd_call_op(opd_op_typed(&op, "aten::adaptive_avg_pool2d", "TTI"), args, 2);
}
opd_tensor *opd_im2col(opd_tensor *self, opd_ints kernel_size, opd_ints dilation, opd_ints padding, opd_ints stride) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_of_ints(kernel_size), opd_value_of_ints(dilation),
                              opd_value_of_ints(padding), opd_value_of_ints(stride)};
    return opd_call_op(opd_op_typed(&op, "aten::im2col", "TTIIII"), args, 5);
}
opd_tensor *opd_col2im(opd_tensor *self, opd_ints output_size, opd_ints kernel_size, opd_ints dilation,
                       opd_ints padding, opd_ints stride) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_of_ints(output_size), opd_value_of_ints(kernel_size),
                              opd_value_of_ints(dilation), opd_value_of_ints(padding), opd_value_of_ints(stride)};
    return opd_call_op(opd_op_typed(&op, "aten::col2im", "TTIIIII"), args, 6);
}
opd_tensor *opd_grid_sampler_2d(opd_tensor *input, opd_tensor *grid, int64_t interpolation_mode, int64_t padding_mode,
                                bool align_corners) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(input), opd_value_tensor(grid), opd_value_int(interpolation_mode),
                              opd_value_int(padding_mode), opd_value_bool(align_corners)};
    return opd_call_op(opd_op_typed(&op, "aten::grid_sampler_2d", "TTTiib"), args, 5);
}
int opd_grid_sampler_2d_backward(opd_tensor **rets, opd_tensor *grad_output, opd_tensor *input, opd_tensor *grid,
                                 int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                 opd_value output_mask) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_tensor(grad_output), opd_value_tensor(input), opd_value_tensor(grid),
                              opd_value_int(interpolation_mode), opd_value_int(padding_mode),
                              opd_value_bool(align_corners), output_mask};
    return opd_call_tensors(opd_op_typed(&op, "aten::grid_sampler_2d_backward", "NTTTiibV"), rets, args, 7);
}
opd_tensor *opd_affine_grid_generator_backward(opd_tensor *grad, opd_ints size, bool align_corners) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(grad), opd_value_of_ints(size), opd_value_bool(align_corners)};
    return opd_call_op(opd_op_typed(&op, "aten::affine_grid_generator_backward", "TTIb"), args, 3);
}
opd_tensor *opd_grid_sampler_3d(opd_tensor *input, opd_tensor *grid, int64_t interpolation_mode, int64_t padding_mode,
                                bool align_corners) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(input), opd_value_tensor(grid), opd_value_int(interpolation_mode),
                              opd_value_int(padding_mode), opd_value_bool(align_corners)};
    return opd_call_op(opd_op_typed(&op, "aten::grid_sampler_3d", "TTTiib"), args, 5);
}
opd_tensor *opd_cdist_forward(opd_tensor *x1, opd_tensor *x2, double p, opd_value compute_mode) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(x1), opd_value_tensor(x2), opd_value_float(p), compute_mode};
    return opd_call_op(opd_op_typed(&op, "aten::_cdist_forward", "TTTdV"), args, 4);
}
opd_tensor *opd_cdist_backward(opd_tensor *grad, opd_tensor *x1, opd_tensor *x2, double p, opd_tensor *cdist) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(grad), opd_value_tensor(x1), opd_value_tensor(x2), opd_value_float(p),
                              opd_value_tensor(cdist)};
    return opd_call_op(opd_op_typed(&op, "aten::_cdist_backward", "TTTTdT"), args, 5);
}
opd_tensor *opd_euclidean_dist(opd_tensor *x1, opd_tensor *x2) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(x1), opd_value_tensor(x2)};
    return opd_call_op(opd_op_typed(&op, "aten::_euclidean_dist", "TTT"), args, 2);
}
opd_tensor *opd_pdist_forward_full(opd_tensor *self, double p) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_float(p)};
    return opd_call_op(opd_op_typed(&op, "aten::_pdist_forward", "TTd"), args, 2);
}
opd_tensor *opd_pdist_backward(opd_tensor *grad, opd_tensor *self, double p, opd_tensor *pdist) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(grad), opd_value_tensor(self), opd_value_float(p),
                              opd_value_tensor(pdist)};
    return opd_call_op(opd_op_typed(&op, "aten::_pdist_backward", "TTTdT"), args, 4);
}
opd_tensor *opd_fft_r2c(opd_tensor *self, opd_ints dim, int64_t normalization, bool onesided) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_of_ints(dim), opd_value_int(normalization),
                              opd_value_bool(onesided)};
    return opd_call_op(opd_op_typed(&op, "aten::_fft_r2c", "TTIib"), args, 4);
}
opd_tensor *opd_fft_c2r(opd_tensor *self, opd_ints dim, int64_t normalization, int64_t last_dim_size) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_of_ints(dim), opd_value_int(normalization),
                              opd_value_int(last_dim_size)};
    return opd_call_op(opd_op_typed(&op, "aten::_fft_c2r", "TTIii"), args, 4);
}
opd_tensor *opd_fft_c2c(opd_tensor *self, opd_ints dim, int64_t normalization, bool forward) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_of_ints(dim), opd_value_int(normalization),
                              opd_value_bool(forward)};
    return opd_call_op(opd_op_typed(&op, "aten::_fft_c2c", "TTIib"), args, 4);
}
int opd__linalg_check_errors(opd_tensor *info, const char *api_name, bool is_matrix) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(info), opd_value_str(api_name), opd_value_bool(is_matrix)};
    return opd_call_all(opd_op_typed(&op, "aten::_linalg_check_errors", "vTsb"), NULL, args, 3);
}
int opd_linalg_cholesky_ex_full(opd_tensor **rets, opd_tensor *self, bool upper, bool check_errors) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_bool(upper), opd_value_bool(check_errors)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_cholesky_ex", "NTbb"), rets, args, 3);
}
opd_tensor *opd_linalg_cholesky_full(opd_tensor *self, bool upper) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_bool(upper)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_cholesky", "TTb"), args, 2);
}
opd_tensor *opd_cholesky_solve_full(opd_tensor *self, opd_tensor *input2, bool upper) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(input2), opd_value_bool(upper)};
    return opd_call_op(opd_op_typed(&op, "aten::cholesky_solve", "TTTb"), args, 3);
}
opd_tensor *opd_linalg_solve_triangular_full(opd_tensor *self, opd_tensor *b, bool upper, bool left,
                                        bool unitriangular) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_tensor(b), opd_value_bool(upper), opd_value_bool(left),
                              opd_value_bool(unitriangular)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_solve_triangular", "TTTbbb"), args, 5);
}
int opd_linalg_lu_factor_ex(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(a)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_lu_factor_ex", "NT"), rets, args, 1);
}
int opd_linalg_lu_factor_ex_full(opd_tensor **rets, opd_tensor *a, bool pivot, bool check_errors) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(a), opd_value_bool(pivot), opd_value_bool(check_errors)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_lu_factor_ex", "NTbb"), rets, args, 3);
}
int opd_lu_unpack(opd_tensor **rets, opd_tensor *lu_data, opd_tensor *lu_pivots) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(lu_data), opd_value_tensor(lu_pivots)};
    return opd_call_tensors(opd_op_typed(&op, "aten::lu_unpack", "NTT"), rets, args, 2);
}
int opd_lu_unpack_full(opd_tensor **rets, opd_tensor *lu_data, opd_tensor *lu_pivots, bool unpack_data,
                       bool unpack_pivots) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(lu_data), opd_value_tensor(lu_pivots), opd_value_bool(unpack_data),
                              opd_value_bool(unpack_pivots)};
    return opd_call_tensors(opd_op_typed(&op, "aten::lu_unpack", "NTTbb"), rets, args, 4);
}
opd_tensor *opd_linalg_lu_solve(opd_tensor *lu, opd_tensor *pivots, opd_tensor *b) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(lu), opd_value_tensor(pivots), opd_value_tensor(b)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_lu_solve", "TTTT"), args, 3);
}
opd_tensor *opd_linalg_lu_solve_full(opd_tensor *lu, opd_tensor *pivots, opd_tensor *b, bool left, bool adjoint) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(lu), opd_value_tensor(pivots), opd_value_tensor(b),
                              opd_value_bool(left), opd_value_bool(adjoint)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_lu_solve", "TTTTbb"), args, 5);
}
int opd__linalg_solve_ex_full(opd_tensor **rets, opd_tensor *a, opd_tensor *b, bool left, bool check_errors) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(a), opd_value_tensor(b), opd_value_bool(left),
                              opd_value_bool(check_errors)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_linalg_solve_ex", "NTTbb"), rets, args, 4);
}
int opd_linalg_solve_ex(opd_tensor **rets, opd_tensor *a, opd_tensor *b) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(a), opd_value_tensor(b)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_solve_ex", "NTT"), rets, args, 2);
}
opd_tensor *opd_linalg_solve(opd_tensor *a, opd_tensor *b) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(a), opd_value_tensor(b)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_solve", "TTT"), args, 2);
}
opd_tensor *opd_linalg_solve_full(opd_tensor *a, opd_tensor *b, bool left) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(a), opd_value_tensor(b), opd_value_bool(left)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_solve", "TTTb"), args, 3);
}
int opd_linalg_ldl_factor_ex_full(opd_tensor **rets, opd_tensor *self, bool hermitian, bool check_errors) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_bool(hermitian), opd_value_bool(check_errors)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_ldl_factor_ex", "NTbb"), rets, args, 3);
}
opd_tensor *opd_linalg_ldl_solve_full(opd_tensor *ld, opd_tensor *pivots, opd_tensor *b, bool hermitian) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(ld), opd_value_tensor(pivots), opd_value_tensor(b),
                              opd_value_bool(hermitian)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_ldl_solve", "TTTTb"), args, 4);
}
int opd_linalg_inv_ex(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(a)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_inv_ex", "NT"), rets, args, 1);
}
opd_tensor *opd_linalg_inv(opd_tensor *a) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(a)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_inv", "TT"), args, 1);
}
int opd__linalg_det(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(a)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_linalg_det", "NT"), rets, args, 1);
}
int opd__linalg_slogdet(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(a)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_linalg_slogdet", "NT"), rets, args, 1);
}
opd_tensor *opd_linalg_det(opd_tensor *a) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(a)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_det", "TT"), args, 1);
}
opd_tensor *opd_linalg_householder_product(opd_tensor *input, opd_tensor *tau) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(input), opd_value_tensor(tau)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_householder_product", "TTT"), args, 2);
}
opd_tensor *opd_ormqr_full(opd_tensor *self, opd_tensor *input2, opd_tensor *input3, bool left, bool transpose) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_tensor(input2), opd_value_tensor(input3),
                              opd_value_bool(left), opd_value_bool(transpose)};
    return opd_call_op(opd_op_typed(&op, "aten::ormqr", "TTTTbb"), args, 5);
}
int opd_linalg_qr(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(a)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_qr", "NT"), rets, args, 1);
}
int opd_linalg_qr_full(opd_tensor **rets, opd_tensor *a, const char *mode) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(a), opd_value_str(mode)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_qr", "NTs"), rets, args, 2);
}
int opd__linalg_eigh_full(opd_tensor **rets, opd_tensor *a, const char *uplo, bool compute_v) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(a), opd_value_str(uplo), opd_value_bool(compute_v)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_linalg_eigh", "NTsb"), rets, args, 3);
}
int opd_linalg_eigh(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_eigh", "NT"), rets, args, 1);
}
opd_tensor *opd_linalg_eigvalsh(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_eigvalsh", "TT"), args, 1);
}
int opd_linalg_eig(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_eig", "NT"), rets, args, 1);
}
opd_tensor *opd__linalg_eigvals(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::_linalg_eigvals", "TT"), args, 1);
}
int opd__linalg_svd(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(a)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_linalg_svd", "NT"), rets, args, 1);
}
int opd__linalg_svd_full(opd_tensor **rets, opd_tensor *a, bool full_matrices, bool compute_uv, const char *driver) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(a), opd_value_bool(full_matrices), opd_value_bool(compute_uv),
                              opd_value_str(driver)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_linalg_svd", "NTbbs"), rets, args, 4);
}
int opd_linalg_svd_full(opd_tensor **rets, opd_tensor *a, bool full_matrices, const char *driver) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(a), opd_value_bool(full_matrices), opd_value_str(driver)};
    return opd_call_tensors(opd_op_typed(&op, "aten::linalg_svd", "NTbs"), rets, args, 3);
}
opd_tensor *opd_linalg_svdvals(opd_tensor *a) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(a)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_svdvals", "TT"), args, 1);
}
opd_tensor *opd_linalg_pinv_atol_rtol_tensor(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_pinv.atol_rtol_tensor", "TT"), args, 1);
}
opd_tensor *opd_linalg_pinv_atol_rtol_tensor_full(opd_tensor *self, opd_tensor *atol, opd_tensor *rtol,
                                        bool hermitian) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_tensor(atol), opd_value_tensor(rtol),
                              opd_value_bool(hermitian)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_pinv.atol_rtol_tensor", "TTTTb"), args, 4);
}
opd_tensor *opd_linalg_matrix_exp(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::linalg_matrix_exp", "TT"), args, 1);
}
opd_tensor *opd_lgamma(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::lgamma", "TT"), args, 1);
}
opd_tensor *opd_digamma(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::digamma", "TT"), args, 1);
}
opd_tensor *opd_polygamma(int64_t n, opd_tensor *self) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_int(n), opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::polygamma", "TiT"), args, 2);
}
opd_tensor *opd_i0(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::i0", "TT"), args, 1);
}
opd_tensor *opd_special_i0e(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_i0e", "TT"), args, 1);
}
opd_tensor *opd_special_i1(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_i1", "TT"), args, 1);
}
opd_tensor *opd_special_i1e(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_i1e", "TT"), args, 1);
}
opd_tensor *opd_special_modified_bessel_i0(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_modified_bessel_i0", "TT"), args, 1);
}
opd_tensor *opd_special_modified_bessel_i1(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_modified_bessel_i1", "TT"), args, 1);
}
opd_tensor *opd_special_modified_bessel_k0(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_modified_bessel_k0", "TT"), args, 1);
}
opd_tensor *opd_special_modified_bessel_k1(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_modified_bessel_k1", "TT"), args, 1);
}
opd_tensor *opd_special_bessel_j0(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_bessel_j0", "TT"), args, 1);
}
opd_tensor *opd_special_bessel_j1(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_bessel_j1", "TT"), args, 1);
}
opd_tensor *opd_special_bessel_y0(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_bessel_y0", "TT"), args, 1);
}
opd_tensor *opd_special_bessel_y1(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::special_bessel_y1", "TT"), args, 1);
}
opd_tensor *opd_special_zeta(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::special_zeta", "TTT"), args, 2);
}
opd_tensor *opd_special_xlog1py(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(other)};
    return opd_call_op(opd_op_typed(&op, "aten::special_xlog1py", "TTT"), args, 2);
}
opd_tensor *opd_standard_gamma_grad(opd_tensor *self, opd_tensor *output) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(output)};
    return opd_call_op(opd_op_typed(&op, "aten::_standard_gamma_grad", "TTT"), args, 2);
}
int opd_native_layer_norm(opd_tensor **rets, opd_tensor *input, opd_ints normalized_shape, opd_tensor *weight,
                          opd_tensor *bias, double eps) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(input), opd_value_of_ints(normalized_shape), opd_value_tensor(weight),
                              opd_value_tensor(bias), opd_value_float(eps)};
    return opd_call_tensors(opd_op_typed(&op, "aten::native_layer_norm", "NTITTd"), rets, args, 5);
}
int opd_native_layer_norm_backward(opd_tensor **rets, opd_tensor *grad_out, opd_tensor *input,
                                   opd_ints normalized_shape, opd_tensor *mean, opd_tensor *rstd, opd_tensor *weight,
                                   opd_tensor *bias, opd_value output_mask) {
    static opd_op *op;
    const opd_value args[8] = {opd_value_tensor(grad_out), opd_value_tensor(input), opd_value_of_ints(normalized_shape),
                              opd_value_tensor(mean), opd_value_tensor(rstd), opd_value_tensor(weight),
                              opd_value_tensor(bias), output_mask};
    return opd_call_tensors(opd_op_typed(&op, "aten::native_layer_norm_backward", "NTTITTTTV"), rets, args, 8);
}
opd_tensor *opd_layer_norm(opd_tensor *input, opd_ints normalized_shape) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(input), opd_value_of_ints(normalized_shape)};
    return opd_call_op(opd_op_typed(&op, "aten::layer_norm", "TTI"), args, 2);
}
opd_tensor *opd_layer_norm_full(opd_tensor *input, opd_ints normalized_shape, opd_tensor *weight, opd_tensor *bias,
                                double eps, bool cudnn_enable) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(input), opd_value_of_ints(normalized_shape), opd_value_tensor(weight),
                              opd_value_tensor(bias), opd_value_float(eps), opd_value_bool(cudnn_enable)};
    return opd_call_op(opd_op_typed(&op, "aten::layer_norm", "TTITTdb"), args, 6);
}
int opd_native_group_norm(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias, int64_t n,
                          int64_t c, int64_t hxw, int64_t group, double eps) {
    static opd_op *op;
    const opd_value args[8] = {opd_value_tensor(input), opd_value_tensor(weight), opd_value_tensor(bias),
                              opd_value_int(n), opd_value_int(c), opd_value_int(hxw), opd_value_int(group),
                              opd_value_float(eps)};
    return opd_call_tensors(opd_op_typed(&op, "aten::native_group_norm", "NTTTiiiid"), rets, args, 8);
}
int opd_native_group_norm_backward(opd_tensor **rets, opd_tensor *grad_out, opd_tensor *input, opd_tensor *mean,
                                   opd_tensor *rstd, opd_tensor *weight, int64_t n, int64_t c, int64_t hxw,
                                   int64_t group, opd_value output_mask) {
    static opd_op *op;
    const opd_value args[10] = {opd_value_tensor(grad_out), opd_value_tensor(input), opd_value_tensor(mean),
                              opd_value_tensor(rstd), opd_value_tensor(weight), opd_value_int(n), opd_value_int(c),
                              opd_value_int(hxw), opd_value_int(group), output_mask};
    return opd_call_tensors(opd_op_typed(&op, "aten::native_group_norm_backward", "NTTTTTiiiiV"), rets, args, 10);
}
opd_tensor *opd_group_norm_full(opd_tensor *input, int64_t num_groups, opd_tensor *weight, opd_tensor *bias, double eps,
                                bool cudnn_enabled) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(input), opd_value_int(num_groups), opd_value_tensor(weight),
                              opd_value_tensor(bias), opd_value_float(eps), opd_value_bool(cudnn_enabled)};
    return opd_call_op(opd_op_typed(&op, "aten::group_norm", "TTiTTdb"), args, 6);
}
int opd_native_batch_norm(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                          opd_tensor *running_mean, opd_tensor *running_var, bool training, double momentum,
                          double eps) {
    static opd_op *op;
    const opd_value args[8] = {opd_value_tensor(input), opd_value_tensor(weight), opd_value_tensor(bias),
                              opd_value_tensor(running_mean), opd_value_tensor(running_var), opd_value_bool(training),
                              opd_value_float(momentum), opd_value_float(eps)};
    return opd_call_tensors(opd_op_typed(&op, "aten::native_batch_norm", "NTTTTTbdd"), rets, args, 8);
}
int opd_native_batch_norm_backward(opd_tensor **rets, opd_tensor *grad_out, opd_tensor *input, opd_tensor *weight,
                                   opd_tensor *running_mean, opd_tensor *running_var, opd_tensor *save_mean,
                                   opd_tensor *save_invstd, bool train, double eps, opd_value output_mask) {
    static opd_op *op;
    const opd_value args[10] = {opd_value_tensor(grad_out), opd_value_tensor(input), opd_value_tensor(weight),
                              opd_value_tensor(running_mean), opd_value_tensor(running_var),
                              opd_value_tensor(save_mean), opd_value_tensor(save_invstd), opd_value_bool(train),
                              opd_value_float(eps), output_mask};
    return opd_call_tensors(opd_op_typed(&op, "aten::native_batch_norm_backward", "NTTTTTTTbdV"), rets, args, 10);
}
opd_tensor *opd_batch_norm(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_tensor *running_mean,
                           opd_tensor *running_var, bool training, double momentum, double eps, bool cudnn_enabled) {
    static opd_op *op;
    const opd_value args[9] = {opd_value_tensor(input), opd_value_tensor(weight), opd_value_tensor(bias),
                              opd_value_tensor(running_mean), opd_value_tensor(running_var), opd_value_bool(training),
                              opd_value_float(momentum), opd_value_float(eps), opd_value_bool(cudnn_enabled)};
    return opd_call_op(opd_op_typed(&op, "aten::batch_norm", "TTTTTTbddb"), args, 9);
}
opd_tensor *opd_instance_norm(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_tensor *running_mean,
                              opd_tensor *running_var, bool use_input_stats, double momentum, double eps,
                              bool cudnn_enabled) {
    static opd_op *op;
    const opd_value args[9] = {opd_value_tensor(input), opd_value_tensor(weight), opd_value_tensor(bias),
                              opd_value_tensor(running_mean), opd_value_tensor(running_var),
                              opd_value_bool(use_input_stats), opd_value_float(momentum), opd_value_float(eps),
                              opd_value_bool(cudnn_enabled)};
    return opd_call_op(opd_op_typed(&op, "aten::instance_norm", "TTTTTTbddb"), args, 9);
}
int opd_weight_norm_interface_full(opd_tensor **rets, opd_tensor *v, opd_tensor *g, int64_t dim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(v), opd_value_tensor(g), opd_value_int(dim)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_weight_norm_interface", "NTTi"), rets, args, 3);
}
int opd_weight_norm_differentiable_backward(opd_tensor **rets, opd_tensor *grad_w, opd_tensor *saved_v,
                                        opd_tensor *saved_g, opd_tensor *saved_norms, int64_t dim) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(grad_w), opd_value_tensor(saved_v), opd_value_tensor(saved_g),
                              opd_value_tensor(saved_norms), opd_value_int(dim)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_weight_norm_differentiable_backward", "NTTTTi"), rets, args, 5);
}
opd_tensor *opd_native_dropout_backward(opd_tensor *grad_output, opd_tensor *mask, double scale) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(grad_output), opd_value_tensor(mask), opd_value_float(scale)};
    return opd_call_op(opd_op_typed(&op, "aten::native_dropout_backward", "TTTd"), args, 3);
}
opd_tensor *opd_dropout(opd_tensor *input, double p, bool train) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(input), opd_value_float(p), opd_value_bool(train)};
    return opd_call_op(opd_op_typed(&op, "aten::dropout", "TTdb"), args, 3);
}
opd_tensor *opd_fake_quantize_per_tensor_affine(opd_tensor *self, double scale, int64_t zero_point, int64_t quant_min,
                                        int64_t quant_max) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_float(scale), opd_value_int(zero_point),
                              opd_value_int(quant_min), opd_value_int(quant_max)};
    return opd_call_op(opd_op_typed(&op, "aten::fake_quantize_per_tensor_affine", "TTdiii"), args, 5);
}
int opd_fake_quantize_per_tensor_affine_cachemask(opd_tensor **rets, opd_tensor *self, double scale, int64_t zero_point,
                                        int64_t quant_min, int64_t quant_max) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_float(scale), opd_value_int(zero_point),
                              opd_value_int(quant_min), opd_value_int(quant_max)};
    return opd_call_tensors(opd_op_typed(&op, "aten::fake_quantize_per_tensor_affine_cachemask", "NTdiii"), rets, args,
        5);
}
int opd__fake_quantize_per_tensor_affine_cachemask_tensor_qparams(opd_tensor **rets, opd_tensor *self,
                                        opd_tensor *scale, opd_tensor *zero_point, opd_tensor *fake_quant_enabled,
                                        int64_t quant_min, int64_t quant_max) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_tensor(scale), opd_value_tensor(zero_point),
                              opd_value_tensor(fake_quant_enabled), opd_value_int(quant_min), opd_value_int(quant_max)};
    return opd_call_tensors(
        opd_op_typed(&op, "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "NTTTTii"), rets, args, 6);
}
opd_tensor *opd_fake_quantize_per_tensor_affine_cachemask_backward(opd_tensor *grad, opd_tensor *mask) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(grad), opd_value_tensor(mask)};
    return opd_call_op(opd_op_typed(&op, "aten::fake_quantize_per_tensor_affine_cachemask_backward", "TTT"), args, 2);
}
opd_tensor *opd_fake_quantize_per_channel_affine(opd_tensor *self, opd_tensor *scale, opd_tensor *zero_point,
                                        int64_t axis, int64_t quant_min, int64_t quant_max) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_tensor(scale), opd_value_tensor(zero_point),
                              opd_value_int(axis), opd_value_int(quant_min), opd_value_int(quant_max)};
    return opd_call_op(opd_op_typed(&op, "aten::fake_quantize_per_channel_affine", "TTTTiii"), args, 6);
}
int opd_fake_quantize_per_channel_affine_cachemask(opd_tensor **rets, opd_tensor *self, opd_tensor *scale,
                                        opd_tensor *zero_point, int64_t axis, int64_t quant_min, int64_t quant_max) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_tensor(scale), opd_value_tensor(zero_point),
                              opd_value_int(axis), opd_value_int(quant_min), opd_value_int(quant_max)};
    return opd_call_tensors(opd_op_typed(&op, "aten::fake_quantize_per_channel_affine_cachemask", "NTTTiii"), rets,
        args, 6);
}
opd_tensor *opd_safe_softmax(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::_safe_softmax", "TTi"), args, 2);
}
int opd_scaled_dot_product_attention_math_full(opd_tensor **rets, opd_tensor *query, opd_tensor *key, opd_tensor *value,
                                        opd_tensor *attn_mask, double dropout_p, bool is_causal,
                                        opd_tensor *dropout_mask, opd_value scale, bool enable_gqa) {
    static opd_op *op;
    const opd_value args[9] = {opd_value_tensor(query), opd_value_tensor(key), opd_value_tensor(value),
                              opd_value_tensor(attn_mask), opd_value_float(dropout_p), opd_value_bool(is_causal),
                              opd_value_tensor(dropout_mask), scale, opd_value_bool(enable_gqa)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_scaled_dot_product_attention_math", "NTTTTdbTVb"), rets, args, 9);
}
int opd_scaled_dot_product_flash_attention_for_cpu_full(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value, double dropout_p, bool is_causal, opd_tensor *attn_mask,
                                        opd_value scale) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_tensor(query), opd_value_tensor(key), opd_value_tensor(value),
                              opd_value_float(dropout_p), opd_value_bool(is_causal), opd_value_tensor(attn_mask),
                              scale};
    return opd_call_tensors(opd_op_typed(&op, "aten::_scaled_dot_product_flash_attention_for_cpu", "NTTTdbTV"), rets,
        args, 7);
}
int opd_scaled_dot_product_flash_attention_for_cpu_backward_full(opd_tensor **rets, opd_tensor *grad_out,
                                        opd_tensor *query, opd_tensor *key, opd_tensor *value, opd_tensor *out,
                                        opd_tensor *logsumexp, double dropout_p, bool is_causal, opd_tensor *attn_mask,
                                        opd_value scale) {
    static opd_op *op;
    const opd_value args[10] = {opd_value_tensor(grad_out), opd_value_tensor(query), opd_value_tensor(key),
                              opd_value_tensor(value), opd_value_tensor(out), opd_value_tensor(logsumexp),
                              opd_value_float(dropout_p), opd_value_bool(is_causal), opd_value_tensor(attn_mask),
                              scale};
    return opd_call_tensors(
        opd_op_typed(&op, "aten::_scaled_dot_product_flash_attention_for_cpu_backward", "NTTTTTTdbTV"), rets, args, 10);
}
int opd__pad_packed_sequence(opd_tensor **rets, opd_tensor *data, opd_tensor *batch_sizes, bool batch_first,
                             opd_value padding_value, int64_t total_length) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(data), opd_value_tensor(batch_sizes), opd_value_bool(batch_first),
                              padding_value, opd_value_int(total_length)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_pad_packed_sequence", "NTTbVi"), rets, args, 5);
}
int opd_nll_loss_forward(opd_tensor **rets, opd_tensor *self, opd_tensor *target, opd_tensor *weight, int64_t reduction,
                         int64_t ignore_index) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_tensor(target), opd_value_tensor(weight),
                              opd_value_int(reduction), opd_value_int(ignore_index)};
    return opd_call_tensors(opd_op_typed(&op, "aten::nll_loss_forward", "NTTTii"), rets, args, 5);
}
opd_tensor *opd_nll_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                                  int64_t reduction, int64_t ignore_index, opd_tensor *total_weight) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_tensor(target),
                              opd_value_tensor(weight), opd_value_int(reduction), opd_value_int(ignore_index),
                              opd_value_tensor(total_weight)};
    return opd_call_op(opd_op_typed(&op, "aten::nll_loss_backward", "TTTTTiiT"), args, 7);
}
int opd_nll_loss2d_forward(opd_tensor **rets, opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                           int64_t reduction, int64_t ignore_index) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_tensor(target), opd_value_tensor(weight),
                              opd_value_int(reduction), opd_value_int(ignore_index)};
    return opd_call_tensors(opd_op_typed(&op, "aten::nll_loss2d_forward", "NTTTii"), rets, args, 5);
}
opd_tensor *opd_nll_loss2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                                    int64_t reduction, int64_t ignore_index, opd_tensor *total_weight) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_tensor(target),
                              opd_value_tensor(weight), opd_value_int(reduction), opd_value_int(ignore_index),
                              opd_value_tensor(total_weight)};
    return opd_call_op(opd_op_typed(&op, "aten::nll_loss2d_backward", "TTTTTiiT"), args, 7);
}
opd_tensor *opd_nll_loss_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight, int64_t reduction,
                              int64_t ignore_index) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_tensor(target), opd_value_tensor(weight),
                              opd_value_int(reduction), opd_value_int(ignore_index)};
    return opd_call_op(opd_op_typed(&op, "aten::nll_loss", "TTTTii"), args, 5);
}
opd_tensor *opd_nll_loss2d_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight, int64_t reduction,
                                int64_t ignore_index) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_tensor(target), opd_value_tensor(weight),
                              opd_value_int(reduction), opd_value_int(ignore_index)};
    return opd_call_op(opd_op_typed(&op, "aten::nll_loss2d", "TTTTii"), args, 5);
}
opd_tensor *opd_cross_entropy_loss(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(target)};
    return opd_call_op(opd_op_typed(&op, "aten::cross_entropy_loss", "TTT"), args, 2);
}
opd_tensor *opd_mse_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target, int64_t reduction) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_tensor(target),
                              opd_value_int(reduction)};
    return opd_call_op(opd_op_typed(&op, "aten::mse_loss_backward", "TTTTi"), args, 4);
}
opd_tensor *opd_smooth_l1_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        int64_t reduction, double beta) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_tensor(target),
                              opd_value_int(reduction), opd_value_float(beta)};
    return opd_call_op(opd_op_typed(&op, "aten::smooth_l1_loss_backward", "TTTTid"), args, 5);
}
opd_tensor *opd_huber_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target, int64_t reduction,
                                    double delta) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_tensor(target),
                              opd_value_int(reduction), opd_value_float(delta)};
    return opd_call_op(opd_op_typed(&op, "aten::huber_loss_backward", "TTTTid"), args, 5);
}
opd_tensor *opd_binary_cross_entropy_backward_full(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        opd_tensor *weight, int64_t reduction) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_tensor(target),
                              opd_value_tensor(weight), opd_value_int(reduction)};
    return opd_call_op(opd_op_typed(&op, "aten::binary_cross_entropy_backward", "TTTTTi"), args, 5);
}
int opd_log_sigmoid_forward(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_tensors(opd_op_typed(&op, "aten::log_sigmoid_forward", "NT"), rets, args, 1);
}
opd_tensor *opd_log_sigmoid_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *buffer) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_tensor(buffer)};
    return opd_call_op(opd_op_typed(&op, "aten::log_sigmoid_backward", "TTTT"), args, 3);
}
opd_tensor *opd_log_sigmoid(opd_tensor *self) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::log_sigmoid", "TT"), args, 1);
}
opd_tensor *opd_soft_margin_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        int64_t reduction) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_tensor(target),
                              opd_value_int(reduction)};
    return opd_call_op(opd_op_typed(&op, "aten::soft_margin_loss_backward", "TTTTi"), args, 4);
}
opd_tensor *opd_glu_backward(opd_tensor *grad_output, opd_tensor *self, int64_t dim) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::glu_backward", "TTTi"), args, 3);
}
opd_tensor *opd_prelu(opd_tensor *self, opd_tensor *weight) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(weight)};
    return opd_call_op(opd_op_typed(&op, "aten::prelu", "TTT"), args, 2);
}
opd_tensor *opd__prelu_kernel(opd_tensor *self, opd_tensor *weight) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(weight)};
    return opd_call_op(opd_op_typed(&op, "aten::_prelu_kernel", "TTT"), args, 2);
}
int opd__prelu_kernel_backward(opd_tensor **rets, opd_tensor *grad_output, opd_tensor *self, opd_tensor *weight) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(grad_output), opd_value_tensor(self), opd_value_tensor(weight)};
    return opd_call_tensors(opd_op_typed(&op, "aten::_prelu_kernel_backward", "NTTT"), rets, args, 3);
}
int opd_multilabel_margin_loss_forward(opd_tensor **rets, opd_tensor *self, opd_tensor *target, int64_t reduction) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(target), opd_value_int(reduction)};
    return opd_call_tensors(opd_op_typed(&op, "aten::multilabel_margin_loss_forward", "NTTi"), rets, args, 3);
}
int opd_rrelu_with_noise_functional_full(opd_tensor **rets, opd_tensor *self, opd_tensor *noise, opd_value lower,
                                        opd_value upper, bool training, opd_generator *generator) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_tensor(noise), lower, upper, opd_value_bool(training),
                              opd_value_generator(generator)};
    return opd_call_tensors(opd_op_typed(&op, "aten::rrelu_with_noise_functional", "NTTVVbG"), rets, args, 6);
}
opd_tensor *opd_gather(opd_tensor *self, int64_t dim, opd_tensor *index) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_tensor(index)};
    return opd_call_op(opd_op_typed(&op, "aten::gather", "TTiT"), args, 3);
}
opd_tensor *opd_scatter(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(dim), opd_value_tensor(index),
                              opd_value_tensor(src)};
    return opd_call_op(opd_op_typed(&op, "aten::scatter.src", "TTiTT"), args, 4);
}
opd_tensor *opd_scatter_value(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(dim), opd_value_tensor(index), value};
    return opd_call_op(opd_op_typed(&op, "aten::scatter.value", "TTiTV"), args, 4);
}
opd_tensor *opd_scatter_add(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(dim), opd_value_tensor(index),
                              opd_value_tensor(src)};
    return opd_call_op(opd_op_typed(&op, "aten::scatter_add", "TTiTT"), args, 4);
}
opd_tensor *opd_scatter_reduce_two(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src,
                                   const char *reduce) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_int(dim), opd_value_tensor(index),
                              opd_value_tensor(src), opd_value_str(reduce)};
    return opd_call_op(opd_op_typed(&op, "aten::scatter_reduce.two", "TTiTTs"), args, 5);
}
opd_tensor *opd_scatter_reduce_two_full(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src,
                                        const char *reduce, bool include_self) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(self), opd_value_int(dim), opd_value_tensor(index),
                              opd_value_tensor(src), opd_value_str(reduce), opd_value_bool(include_self)};
    return opd_call_op(opd_op_typed(&op, "aten::scatter_reduce.two", "TTiTTsb"), args, 6);
}
opd_tensor *opd_index_select(opd_tensor *self, int64_t dim, opd_tensor *index) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_int(dim), opd_value_tensor(index)};
    return opd_call_op(opd_op_typed(&op, "aten::index_select", "TTiT"), args, 3);
}
opd_tensor *opd_index_select_backward(opd_tensor *grad, opd_ints self_sizes, int64_t dim, opd_tensor *index) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(grad), opd_value_of_ints(self_sizes), opd_value_int(dim),
                              opd_value_tensor(index)};
    return opd_call_op(opd_op_typed(&op, "aten::index_select_backward", "TTIiT"), args, 4);
}
opd_tensor *opd_index_add(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(dim), opd_value_tensor(index),
                              opd_value_tensor(source)};
    return opd_call_op(opd_op_typed(&op, "aten::index_add", "TTiTT"), args, 4);
}
opd_tensor *opd_index_fill_int_Scalar(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(dim), opd_value_tensor(index), value};
    return opd_call_op(opd_op_typed(&op, "aten::index_fill.int_Scalar", "TTiTV"), args, 4);
}
opd_tensor *opd_index_reduce(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source, const char *reduce) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_int(dim), opd_value_tensor(index),
                              opd_value_tensor(source), opd_value_str(reduce)};
    return opd_call_op(opd_op_typed(&op, "aten::index_reduce", "TTiTTs"), args, 5);
}
opd_tensor *opd_index(opd_tensor *self, opd_tensors indices) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_tensors(indices)};
    return opd_call_op(opd_op_typed(&op, "aten::index.Tensor", "TTL"), args, 2);
}
opd_tensor *opd_index_put(opd_tensor *self, opd_tensors indices, opd_tensor *values) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_of_tensors(indices), opd_value_tensor(values)};
    return opd_call_op(opd_op_typed(&op, "aten::index_put", "TTLT"), args, 3);
}
opd_tensor *opd_index_put_full(opd_tensor *self, opd_tensors indices, opd_tensor *values, bool accumulate) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_of_tensors(indices), opd_value_tensor(values),
                              opd_value_bool(accumulate)};
    return opd_call_op(opd_op_typed(&op, "aten::index_put", "TTLTb"), args, 4);
}
opd_tensor *opd_take(opd_tensor *self, opd_tensor *index) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(index)};
    return opd_call_op(opd_op_typed(&op, "aten::take", "TTT"), args, 2);
}
opd_tensor *opd_put_full(opd_tensor *self, opd_tensor *index, opd_tensor *source, bool accumulate) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_tensor(index), opd_value_tensor(source),
                              opd_value_bool(accumulate)};
    return opd_call_op(opd_op_typed(&op, "aten::put", "TTTTb"), args, 4);
}
opd_tensor *opd_masked_select(opd_tensor *self, opd_tensor *mask) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_tensor(mask)};
    return opd_call_op(opd_op_typed(&op, "aten::masked_select", "TTT"), args, 2);
}
opd_tensor *opd_masked_scatter(opd_tensor *self, opd_tensor *mask, opd_tensor *source) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_tensor(mask), opd_value_tensor(source)};
    return opd_call_op(opd_op_typed(&op, "aten::masked_scatter", "TTTT"), args, 3);
}
opd_tensor *opd_cat(opd_tensors tensors) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_of_tensors(tensors)};
    return opd_call_op(opd_op_typed(&op, "aten::cat", "TL"), args, 1);
}
opd_tensor *opd_cat_full(opd_tensors tensors, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_of_tensors(tensors), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::cat", "TLi"), args, 2);
}
opd_tensor *opd_stack(opd_tensors tensors) {
    static opd_op *op;
    const opd_value args[1] = {opd_value_of_tensors(tensors)};
    return opd_call_op(opd_op_typed(&op, "aten::stack", "TL"), args, 1);
}
opd_tensor *opd_stack_full(opd_tensors tensors, int64_t dim) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_of_tensors(tensors), opd_value_int(dim)};
    return opd_call_op(opd_op_typed(&op, "aten::stack", "TLi"), args, 2);
}
opd_tensor *opd_constant_pad_nd(opd_tensor *self, opd_ints pad) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_of_ints(pad)};
    return opd_call_op(opd_op_typed(&op, "aten::constant_pad_nd", "TTI"), args, 2);
}
opd_tensor *opd_constant_pad_nd_full(opd_tensor *self, opd_ints pad, opd_value value) {
    static opd_op *op;
    const opd_value args[3] = {opd_value_tensor(self), opd_value_of_ints(pad), value};
    return opd_call_op(opd_op_typed(&op, "aten::constant_pad_nd", "TTIV"), args, 3);
}
opd_tensor *opd_pad_full(opd_tensor *self, opd_ints pad, const char *mode, opd_value value) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_of_ints(pad), opd_value_str(mode), value};
    return opd_call_op(opd_op_typed(&op, "aten::pad", "TTIsV"), args, 4);
}
opd_tensor *opd_embedding(opd_tensor *weight, opd_tensor *indices) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(weight), opd_value_tensor(indices)};
    return opd_call_op(opd_op_typed(&op, "aten::embedding", "TTT"), args, 2);
}
opd_tensor *opd_embedding_dense_backward(opd_tensor *grad_output, opd_tensor *indices, int64_t num_weights,
                                        int64_t padding_idx, bool scale_grad_by_freq) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(grad_output), opd_value_tensor(indices), opd_value_int(num_weights),
                              opd_value_int(padding_idx), opd_value_bool(scale_grad_by_freq)};
    return opd_call_op(opd_op_typed(&op, "aten::embedding_dense_backward", "TTTiib"), args, 5);
}
int opd_embedding_bag_full(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices, opd_tensor *offsets,
                           bool scale_grad_by_freq, int64_t mode, bool sparse, opd_tensor *per_sample_weights,
                           bool include_last_offset) {
    static opd_op *op;
    const opd_value args[8] = {opd_value_tensor(weight), opd_value_tensor(indices), opd_value_tensor(offsets),
                              opd_value_bool(scale_grad_by_freq), opd_value_int(mode), opd_value_bool(sparse),
                              opd_value_tensor(per_sample_weights), opd_value_bool(include_last_offset)};
    return opd_call_tensors(opd_op_typed(&op, "aten::embedding_bag", "NTTTbibTb"), rets, args, 8);
}
opd_tensor *opd_embedding_bag_backward_full(opd_tensor *grad, opd_tensor *indices, opd_tensor *offsets,
                                        opd_tensor *offset2bag, opd_tensor *bag_size, opd_tensor *maximum_indices,
                                        int64_t num_weights, bool scale_grad_by_freq, int64_t mode, bool sparse,
                                        opd_tensor *per_sample_weights, int64_t padding_idx) {
    static opd_op *op;
    const opd_value args[12] = {opd_value_tensor(grad), opd_value_tensor(indices), opd_value_tensor(offsets),
                              opd_value_tensor(offset2bag), opd_value_tensor(bag_size),
                              opd_value_tensor(maximum_indices), opd_value_int(num_weights),
                              opd_value_bool(scale_grad_by_freq), opd_value_int(mode), opd_value_bool(sparse),
                              opd_value_tensor(per_sample_weights), opd_value_int(padding_idx)};
    return opd_call_op(opd_op_typed(&op, "aten::_embedding_bag_backward", "TTTTTTTibibTi"), args, 12);
}
opd_tensor *opd_embedding_bag_dense_backward_full(opd_tensor *grad, opd_tensor *indices, opd_tensor *offset2bag,
                                        opd_tensor *bag_size, opd_tensor *maximum_indices, int64_t num_weights,
                                        bool scale_grad_by_freq, int64_t mode, opd_tensor *per_sample_weights,
                                        int64_t padding_idx) {
    static opd_op *op;
    const opd_value args[10] = {opd_value_tensor(grad), opd_value_tensor(indices), opd_value_tensor(offset2bag),
                              opd_value_tensor(bag_size), opd_value_tensor(maximum_indices), opd_value_int(num_weights),
                              opd_value_bool(scale_grad_by_freq), opd_value_int(mode),
                              opd_value_tensor(per_sample_weights), opd_value_int(padding_idx)};
    return opd_call_op(opd_op_typed(&op, "aten::_embedding_bag_dense_backward", "TTTTTTibiTi"), args, 10);
}
opd_tensor *opd_embedding_bag_per_sample_weights_backward_full(opd_tensor *grad, opd_tensor *weight,
                                        opd_tensor *indices, opd_tensor *offsets, opd_tensor *offset2bag, int64_t mode,
                                        int64_t padding_idx) {
    static opd_op *op;
    const opd_value args[7] = {opd_value_tensor(grad), opd_value_tensor(weight), opd_value_tensor(indices),
                              opd_value_tensor(offsets), opd_value_tensor(offset2bag), opd_value_int(mode),
                              opd_value_int(padding_idx)};
    return opd_call_op(opd_op_typed(&op, "aten::_embedding_bag_per_sample_weights_backward", "TTTTTTii"), args, 7);
}
opd_tensor *opd_one_hot_full(opd_tensor *self, int64_t num_classes) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(self), opd_value_int(num_classes)};
    return opd_call_op(opd_op_typed(&op, "aten::one_hot", "TTi"), args, 2);
}
opd_tensor *opd_as_strided_scatter_full(opd_tensor *self, opd_tensor *src, opd_ints size, opd_ints stride,
                                        opd_value storage_offset) {
    static opd_op *op;
    const opd_value args[5] = {opd_value_tensor(self), opd_value_tensor(src), opd_value_of_ints(size),
                              opd_value_of_ints(stride), storage_offset};
    return opd_call_op(opd_op_typed(&op, "aten::as_strided_scatter", "TTTIIV"), args, 5);
}
opd_tensor *opd_repeat_interleave_full(opd_tensor *self, int64_t repeats, opd_value dim, opd_value output_size) {
    static opd_op *op;
    const opd_value args[4] = {opd_value_tensor(self), opd_value_int(repeats), dim, output_size};
    return opd_call_op(opd_op_typed(&op, "aten::repeat_interleave.self_int", "TTiVV"), args, 4);
}
opd_tensor *opd_searchsorted(opd_tensor *sorted_sequence, opd_tensor *self) {
    static opd_op *op;
    const opd_value args[2] = {opd_value_tensor(sorted_sequence), opd_value_tensor(self)};
    return opd_call_op(opd_op_typed(&op, "aten::searchsorted.Tensor", "TTT"), args, 2);
}
opd_tensor *opd_searchsorted_full(opd_tensor *sorted_sequence, opd_tensor *self, bool out_int32, bool right,
                                  opd_value side, opd_value sorter) {
    static opd_op *op;
    const opd_value args[6] = {opd_value_tensor(sorted_sequence), opd_value_tensor(self), opd_value_bool(out_int32),
                              opd_value_bool(right), side, sorter};
    return opd_call_op(opd_op_typed(&op, "aten::searchsorted.Tensor", "TTTbbVV"), args, 6);
}
OPDI_COLD_END
OPDI_ONCE_BEGIN
opd_tensor *opd_empty_permuted(opd_ints size, opd_ints physical_layout, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::empty_permuted", "TIIV", size, physical_layout, opd_value_dtype(dtype));
}
opd_tensor *opd_empty_permuted_full(opd_ints size, opd_ints physical_layout, opd_value dtype, opd_value layout,
                                    opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::empty_permuted", "TIIVVVV", size, physical_layout, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_zeros_full(opd_ints size, opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::zeros", "TIVVVV", size, dtype, layout, device, pin_memory);
}
opd_tensor *opd_full_full(opd_ints size, opd_value fill_value, opd_value dtype, opd_value layout, opd_value device,
                          opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::full", "TIVVVVV", size, fill_value, dtype, layout, device, pin_memory);
}
opd_tensor *opd_empty_like_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::empty_like", "TTVVVVV", self, dtype, layout, device, pin_memory, memory_format);
}
opd_tensor *opd_full_like_full(opd_tensor *self, opd_value fill_value, opd_value dtype, opd_value layout,
                               opd_value device, opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::full_like", "TTVVVVVV", self, fill_value, dtype, layout, device, pin_memory,
                        memory_format);
}
opd_tensor *opd_new_empty_strided_full(opd_tensor *self, opd_ints size, opd_ints stride, opd_value dtype,
                                       opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::new_empty_strided", "TTIIVVVV", self, size, stride, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_new_ones_full(opd_tensor *self, opd_ints size, opd_value dtype, opd_value layout, opd_value device,
                              opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::new_ones", "TTIVVVV", self, size, dtype, layout, device, pin_memory);
}
opd_tensor *opd_fill_Tensor_(opd_tensor *self, opd_tensor *value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fill_.Tensor", "TTT", self, value);
}
opd_tensor *opd_fill(opd_tensor *self, opd_value value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fill.Scalar", "TTV", self, value);
}
opd_tensor *opd_fill_Tensor(opd_tensor *self, opd_tensor *value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fill.Tensor", "TTT", self, value);
}
opd_tensor *opd_zero(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::zero", "TT", self);
}
opd_tensor *opd_arange_start(opd_value start, opd_value end, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arange.start", "TVVV", start, end, opd_value_dtype(dtype));
}
opd_tensor *opd_arange_start_step_full(opd_value start, opd_value end, opd_value step, opd_value dtype,
                                       opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arange.start_step", "TVVVVVVV", start, end, step, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_range(opd_value start, opd_value end, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::range", "TVVV", start, end, opd_value_dtype(dtype));
}
opd_tensor *opd_range_full(opd_value start, opd_value end, opd_value dtype, opd_value layout, opd_value device,
                           opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::range", "TVVVVVV", start, end, dtype, layout, device, pin_memory);
}
opd_tensor *opd_range_step(opd_value start, opd_value end, opd_value step, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::range.step", "TVVVV", start, end, step, opd_value_dtype(dtype));
}
opd_tensor *opd_range_step_full(opd_value start, opd_value end, opd_value step, opd_value dtype, opd_value layout,
                                opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::range.step", "TVVVVVVV", start, end, step, dtype, layout, device, pin_memory);
}
opd_tensor *opd_linspace(opd_value start, opd_value end, int64_t steps, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linspace", "TVViV", start, end, steps, opd_value_dtype(dtype));
}
opd_tensor *opd_logspace(opd_value start, opd_value end, int64_t steps, double base, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logspace", "TVVidV", start, end, steps, base, opd_value_dtype(dtype));
}
opd_tensor *opd_logspace_full(opd_value start, opd_value end, int64_t steps, double base, opd_value dtype,
                              opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logspace", "TVVidVVVV", start, end, steps, base, dtype, layout, device, pin_memory);
}
opd_tensor *opd_linspace_Tensor_Tensor(opd_tensor *start, opd_tensor *end, int64_t steps, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linspace.Tensor_Tensor", "TTTiV", start, end, steps, opd_value_dtype(dtype));
}
opd_tensor *opd_linspace_Tensor_Tensor_full(opd_tensor *start, opd_tensor *end, int64_t steps, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linspace.Tensor_Tensor", "TTTiVVVV", start, end, steps, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_linspace_Tensor_Scalar(opd_tensor *start, opd_value end, int64_t steps, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linspace.Tensor_Scalar", "TTViV", start, end, steps, opd_value_dtype(dtype));
}
opd_tensor *opd_linspace_Tensor_Scalar_full(opd_tensor *start, opd_value end, int64_t steps, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linspace.Tensor_Scalar", "TTViVVVV", start, end, steps, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_linspace_Scalar_Tensor(opd_value start, opd_tensor *end, int64_t steps, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linspace.Scalar_Tensor", "TVTiV", start, end, steps, opd_value_dtype(dtype));
}
opd_tensor *opd_linspace_Scalar_Tensor_full(opd_value start, opd_tensor *end, int64_t steps, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linspace.Scalar_Tensor", "TVTiVVVV", start, end, steps, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_logspace_Tensor_Tensor(opd_tensor *start, opd_tensor *end, int64_t steps, double base,
                                       opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logspace.Tensor_Tensor", "TTTidV", start, end, steps, base, opd_value_dtype(dtype));
}
opd_tensor *opd_logspace_Tensor_Tensor_full(opd_tensor *start, opd_tensor *end, int64_t steps, double base,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logspace.Tensor_Tensor", "TTTidVVVV", start, end, steps, base, dtype, layout,
                        device, pin_memory);
}
opd_tensor *opd_logspace_Tensor_Scalar(opd_tensor *start, opd_value end, int64_t steps, double base,
                                       opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logspace.Tensor_Scalar", "TTVidV", start, end, steps, base, opd_value_dtype(dtype));
}
opd_tensor *opd_logspace_Tensor_Scalar_full(opd_tensor *start, opd_value end, int64_t steps, double base,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logspace.Tensor_Scalar", "TTVidVVVV", start, end, steps, base, dtype, layout,
                        device, pin_memory);
}
opd_tensor *opd_logspace_Scalar_Tensor(opd_value start, opd_tensor *end, int64_t steps, double base,
                                       opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logspace.Scalar_Tensor", "TVTidV", start, end, steps, base, opd_value_dtype(dtype));
}
opd_tensor *opd_logspace_Scalar_Tensor_full(opd_value start, opd_tensor *end, int64_t steps, double base,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logspace.Scalar_Tensor", "TVTidVVVV", start, end, steps, base, dtype, layout,
                        device, pin_memory);
}
opd_tensor *opd_eye(int64_t n, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::eye", "TiV", n, opd_value_dtype(dtype));
}
opd_tensor *opd_eye_full(int64_t n, opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::eye", "TiVVVV", n, dtype, layout, device, pin_memory);
}
opd_tensor *opd_eye_m_full(int64_t n, int64_t m, opd_value dtype, opd_value layout, opd_value device,
                           opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::eye.m", "TiiVVVV", n, m, dtype, layout, device, pin_memory);
}
opd_tensor *opd_tril_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::tril_", "TT", self);
}
opd_tensor *opd_tril_full_(opd_tensor *self, int64_t diagonal) {
    static opd_op *op;
    return opd_given_op(&op, "aten::tril_", "TTi", self, diagonal);
}
opd_tensor *opd_triu_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::triu_", "TT", self);
}
opd_tensor *opd_triu_full_(opd_tensor *self, int64_t diagonal) {
    static opd_op *op;
    return opd_given_op(&op, "aten::triu_", "TTi", self, diagonal);
}
opd_tensor *opd_tril_indices(int64_t row, int64_t col) {
    static opd_op *op;
    return opd_given_op(&op, "aten::tril_indices", "Tii", row, col);
}
opd_tensor *opd_tril_indices_full(int64_t row, int64_t col, int64_t offset, opd_value dtype, opd_value layout,
                                  opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::tril_indices", "TiiiVVVV", row, col, offset, dtype, layout, device, pin_memory);
}
opd_tensor *opd_triu_indices(int64_t row, int64_t col) {
    static opd_op *op;
    return opd_given_op(&op, "aten::triu_indices", "Tii", row, col);
}
opd_tensor *opd_rand(opd_ints size, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rand", "TIV", size, opd_value_dtype(dtype));
}
opd_tensor *opd_rand_full(opd_ints size, opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rand", "TIVVVV", size, dtype, layout, device, pin_memory);
}
opd_tensor *opd_rand_generator(opd_ints size, opd_generator *generator, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rand.generator", "TIGV", size, generator, opd_value_dtype(dtype));
}
opd_tensor *opd_randn(opd_ints size, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randn", "TIV", size, opd_value_dtype(dtype));
}
opd_tensor *opd_randn_full(opd_ints size, opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randn", "TIVVVV", size, dtype, layout, device, pin_memory);
}
opd_tensor *opd_randn_generator(opd_ints size, opd_generator *generator, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randn.generator", "TIGV", size, generator, opd_value_dtype(dtype));
}
opd_tensor *opd_randn_generator_full(opd_ints size, opd_generator *generator, opd_value dtype, opd_value layout,
                                     opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randn.generator", "TIGVVVV", size, generator, dtype, layout, device, pin_memory);
}
opd_tensor *opd_randint(int64_t high, opd_ints size, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint", "TiIV", high, size, opd_value_dtype(dtype));
}
opd_tensor *opd_randint_full(int64_t high, opd_ints size, opd_value dtype, opd_value layout, opd_value device,
                             opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint", "TiIVVVV", high, size, dtype, layout, device, pin_memory);
}
opd_tensor *opd_randint_generator(int64_t high, opd_ints size, opd_generator *generator, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint.generator", "TiIGV", high, size, generator, opd_value_dtype(dtype));
}
opd_tensor *opd_randint_generator_full(int64_t high, opd_ints size, opd_generator *generator, opd_value dtype,
                                       opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint.generator", "TiIGVVVV", high, size, generator, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_randint_low(int64_t low, int64_t high, opd_ints size, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint.low", "TiiIV", low, high, size, opd_value_dtype(dtype));
}
opd_tensor *opd_randint_low_full(int64_t low, int64_t high, opd_ints size, opd_value dtype, opd_value layout,
                                 opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint.low", "TiiIVVVV", low, high, size, dtype, layout, device, pin_memory);
}
opd_tensor *opd_randint_low_generator(int64_t low, int64_t high, opd_ints size, opd_generator *generator,
                                      opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint.low_generator", "TiiIGV", low, high, size, generator,
                        opd_value_dtype(dtype));
}
opd_tensor *opd_randint_low_generator_full(int64_t low, int64_t high, opd_ints size, opd_generator *generator,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint.low_generator", "TiiIGVVVV", low, high, size, generator, dtype, layout,
                        device, pin_memory);
}
opd_tensor *opd_randperm_full(int64_t n, opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randperm", "TiVVVV", n, dtype, layout, device, pin_memory);
}
opd_tensor *opd_randperm_generator(int64_t n, opd_generator *generator, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randperm.generator", "TiGV", n, generator, opd_value_dtype(dtype));
}
opd_tensor *opd_randperm_generator_full(int64_t n, opd_generator *generator, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randperm.generator", "TiGVVVV", n, generator, dtype, layout, device, pin_memory);
}
opd_tensor *opd_rand_like(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rand_like", "TT", self);
}
opd_tensor *opd_rand_like_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                               opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rand_like", "TTVVVVV", self, dtype, layout, device, pin_memory, memory_format);
}
opd_tensor *opd_rand_like_generator(opd_tensor *self, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rand_like.generator", "TTG", self, generator);
}
opd_tensor *opd_rand_like_generator_full(opd_tensor *self, opd_generator *generator, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rand_like.generator", "TTGVVVVV", self, generator, dtype, layout, device,
                        pin_memory, memory_format);
}
opd_tensor *opd_randn_like_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randn_like", "TTVVVVV", self, dtype, layout, device, pin_memory, memory_format);
}
opd_tensor *opd_randn_like_generator(opd_tensor *self, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randn_like.generator", "TTG", self, generator);
}
opd_tensor *opd_randn_like_generator_full(opd_tensor *self, opd_generator *generator, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randn_like.generator", "TTGVVVVV", self, generator, dtype, layout, device,
                        pin_memory, memory_format);
}
opd_tensor *opd_randint_like(opd_tensor *self, int64_t high) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like", "TTi", self, high);
}
opd_tensor *opd_randint_like_full(opd_tensor *self, int64_t high, opd_value dtype, opd_value layout, opd_value device,
                                  opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like", "TTiVVVVV", self, high, dtype, layout, device, pin_memory,
                        memory_format);
}
opd_tensor *opd_randint_like_generator(opd_tensor *self, int64_t high, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like.generator", "TTiG", self, high, generator);
}
opd_tensor *opd_randint_like_generator_full(opd_tensor *self, int64_t high, opd_generator *generator, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory,
                                        opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like.generator", "TTiGVVVVV", self, high, generator, dtype, layout, device,
                        pin_memory, memory_format);
}
opd_tensor *opd_randint_like_low(opd_tensor *self, int64_t low, int64_t high) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like.low_dtype", "TTii", self, low, high);
}
opd_tensor *opd_randint_like_low_full(opd_tensor *self, int64_t low, int64_t high, opd_value dtype, opd_value layout,
                                      opd_value device, opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like.low_dtype", "TTiiVVVVV", self, low, high, dtype, layout, device,
                        pin_memory, memory_format);
}
opd_tensor *opd_randint_like_low_generator_dtype(opd_tensor *self, int64_t low, int64_t high,
                                        opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like.low_generator_dtype", "TTiiG", self, low, high, generator);
}
opd_tensor *opd_randint_like_low_generator_dtype_full(opd_tensor *self, int64_t low, int64_t high,
                                        opd_generator *generator, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like.low_generator_dtype", "TTiiGVVVVV", self, low, high, generator, dtype,
                        layout, device, pin_memory, memory_format);
}
opd_tensor *opd_randint_like_Tensor(opd_tensor *self, opd_tensor *high) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like.Tensor", "TTT", self, high);
}
opd_tensor *opd_randint_like_Tensor_full(opd_tensor *self, opd_tensor *high, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like.Tensor", "TTTVVVVV", self, high, dtype, layout, device, pin_memory,
                        memory_format);
}
opd_tensor *opd_randint_like_Tensor_generator(opd_tensor *self, opd_tensor *high, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like.Tensor_generator", "TTTG", self, high, generator);
}
opd_tensor *opd_randint_like_Tensor_generator_full(opd_tensor *self, opd_tensor *high, opd_generator *generator,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory,
                                        opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::randint_like.Tensor_generator", "TTTGVVVVV", self, high, generator, dtype, layout,
                        device, pin_memory, memory_format);
}
opd_tensor *opd_normal_full_(opd_tensor *self, double mean, double std, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal_", "TTddG", self, mean, std, generator);
}
opd_tensor *opd_exponential_(opd_tensor *self, double lambd) {
    static opd_op *op;
    return opd_given_op(&op, "aten::exponential_", "TTd", self, lambd);
}
opd_tensor *opd_random_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random_", "TT", self);
}
opd_tensor *opd_random_full_(opd_tensor *self, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random_", "TTG", self, generator);
}
opd_tensor *opd_random_from_(opd_tensor *self, int64_t from, opd_value to) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random_.from", "TTiV", self, from, to);
}
opd_tensor *opd_random_from_full_(opd_tensor *self, int64_t from, opd_value to, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random_.from", "TTiVG", self, from, to, generator);
}
opd_tensor *opd_random_to_(opd_tensor *self, int64_t to) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random_.to", "TTi", self, to);
}
opd_tensor *opd_random_to_full_(opd_tensor *self, int64_t to, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random_.to", "TTiG", self, to, generator);
}
opd_tensor *opd_bernoulli_(opd_tensor *self, double p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bernoulli_.float", "TTd", self, p);
}
opd_tensor *opd_bernoulli_full_(opd_tensor *self, double p, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bernoulli_.float", "TTdG", self, p, generator);
}
opd_tensor *opd_bernoulli_Tensor_(opd_tensor *self, opd_tensor *p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bernoulli_.Tensor", "TTT", self, p);
}
opd_tensor *opd_bernoulli_Tensor_full_(opd_tensor *self, opd_tensor *p, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bernoulli_.Tensor", "TTTG", self, p, generator);
}
opd_tensor *opd_bernoulli_Tensor(opd_tensor *self, opd_tensor *p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bernoulli.Tensor", "TTT", self, p);
}
opd_tensor *opd_bernoulli_Tensor_full(opd_tensor *self, opd_tensor *p, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bernoulli.Tensor", "TTTG", self, p, generator);
}
opd_tensor *opd_bernoulli(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bernoulli", "TT", self);
}
opd_tensor *opd_bernoulli_full(opd_tensor *self, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bernoulli", "TTG", self, generator);
}
opd_tensor *opd_bernoulli_p_full(opd_tensor *self, double p, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bernoulli.p", "TTdG", self, p, generator);
}
opd_tensor *opd_normal_functional(opd_tensor *self, double mean, double std) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal_functional", "TTdd", self, mean, std);
}
opd_tensor *opd_normal_functional_full(opd_tensor *self, double mean, double std, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal_functional", "TTddG", self, mean, std, generator);
}
opd_tensor *opd_normal_Tensor_float(opd_tensor *mean, double std) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal.Tensor_float", "TTd", mean, std);
}
opd_tensor *opd_normal_Tensor_float_full(opd_tensor *mean, double std, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal.Tensor_float", "TTdG", mean, std, generator);
}
opd_tensor *opd_normal_float_Tensor(double mean, opd_tensor *std) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal.float_Tensor", "TdT", mean, std);
}
opd_tensor *opd_normal_float_Tensor_full(double mean, opd_tensor *std, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal.float_Tensor", "TdTG", mean, std, generator);
}
opd_tensor *opd_normal_Tensor_Tensor(opd_tensor *mean, opd_tensor *std) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal.Tensor_Tensor", "TTT", mean, std);
}
opd_tensor *opd_normal_Tensor_Tensor_full(opd_tensor *mean, opd_tensor *std, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal.Tensor_Tensor", "TTTG", mean, std, generator);
}
opd_tensor *opd_normal(double mean, double std, opd_ints size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal.float_float", "TddI", mean, std, size);
}
opd_tensor *opd_normal_full(double mean, double std, opd_ints size, opd_generator *generator, opd_value dtype,
                            opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::normal.float_float", "TddIGVVVV", mean, std, size, generator, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_uniform(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::uniform", "TT", self);
}
opd_tensor *opd_uniform_full(opd_tensor *self, double from, double to, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::uniform", "TTddG", self, from, to, generator);
}
opd_tensor *opd_random(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random", "TT", self);
}
opd_tensor *opd_random_full(opd_tensor *self, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random", "TTG", self, generator);
}
opd_tensor *opd_random_from(opd_tensor *self, int64_t from, opd_value to) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random.from", "TTiV", self, from, to);
}
opd_tensor *opd_random_from_full(opd_tensor *self, int64_t from, opd_value to, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random.from", "TTiVG", self, from, to, generator);
}
opd_tensor *opd_random_to(opd_tensor *self, int64_t to) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random.to", "TTi", self, to);
}
opd_tensor *opd_random_to_full(opd_tensor *self, int64_t to, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::random.to", "TTiG", self, to, generator);
}
opd_tensor *opd_exponential(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::exponential", "TT", self);
}
opd_tensor *opd_exponential_full(opd_tensor *self, double lambd, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::exponential", "TTdG", self, lambd, generator);
}
opd_tensor *opd_geometric(opd_tensor *self, double p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::geometric", "TTd", self, p);
}
opd_tensor *opd_geometric_full(opd_tensor *self, double p, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::geometric", "TTdG", self, p, generator);
}
opd_tensor *opd_geometric_(opd_tensor *self, double p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::geometric_", "TTd", self, p);
}
opd_tensor *opd_geometric_full_(opd_tensor *self, double p, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::geometric_", "TTdG", self, p, generator);
}
opd_tensor *opd_cauchy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cauchy", "TT", self);
}
opd_tensor *opd_cauchy_full(opd_tensor *self, double median, double sigma, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cauchy", "TTddG", self, median, sigma, generator);
}
opd_tensor *opd_cauchy_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cauchy_", "TT", self);
}
opd_tensor *opd_cauchy_full_(opd_tensor *self, double median, double sigma, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cauchy_", "TTddG", self, median, sigma, generator);
}
opd_tensor *opd_log_normal(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::log_normal", "TT", self);
}
opd_tensor *opd_log_normal_full(opd_tensor *self, double mean, double std, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::log_normal", "TTddG", self, mean, std, generator);
}
opd_tensor *opd_log_normal_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::log_normal_", "TT", self);
}
opd_tensor *opd_log_normal_full_(opd_tensor *self, double mean, double std, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::log_normal_", "TTddG", self, mean, std, generator);
}
opd_tensor *opd_poisson(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::poisson", "TT", self);
}
opd_tensor *opd_poisson_full(opd_tensor *self, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::poisson", "TTG", self, generator);
}
opd_tensor *opd_binomial(opd_tensor *count, opd_tensor *prob) {
    static opd_op *op;
    return opd_given_op(&op, "aten::binomial", "TTT", count, prob);
}
opd_tensor *opd_binomial_full(opd_tensor *count, opd_tensor *prob, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::binomial", "TTTG", count, prob, generator);
}
opd_tensor *opd_standard_gamma(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_standard_gamma", "TT", self);
}
opd_tensor *opd_standard_gamma_full(opd_tensor *self, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_standard_gamma", "TTG", self, generator);
}
opd_tensor *opd_sample_dirichlet(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_sample_dirichlet", "TT", self);
}
opd_tensor *opd_sample_dirichlet_full(opd_tensor *self, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_sample_dirichlet", "TTG", self, generator);
}
opd_tensor *opd_reshape_alias(opd_tensor *self, opd_ints size, opd_ints stride) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_reshape_alias", "TTII", self, size, stride);
}
opd_tensor *opd_expand_full(opd_tensor *self, opd_ints size, bool implicit) {
    static opd_op *op;
    return opd_given_op(&op, "aten::expand", "TTIb", self, size, implicit);
}
opd_tensor *opd_as_strided(opd_tensor *self, opd_ints size, opd_ints stride) {
    static opd_op *op;
    return opd_given_op(&op, "aten::as_strided", "TTII", self, size, stride);
}
opd_tensor *opd_view_as(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::view_as", "TTT", self, other);
}
opd_tensor *opd_reshape_as(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::reshape_as", "TTT", self, other);
}
opd_tensor *opd_copy_full_(opd_tensor *self, opd_tensor *src, bool non_blocking) {
    static opd_op *op;
    return opd_given_op(&op, "aten::copy_", "TTTb", self, src, non_blocking);
}
opd_tensor *opd_to_copy(opd_tensor *self, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_to_copy", "TTV", self, opd_value_dtype(dtype));
}
opd_tensor *opd_contiguous_full(opd_tensor *self, int64_t memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::contiguous", "TTi", self, memory_format);
}
opd_tensor *opd_view_dtype(opd_tensor *self, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::view.dtype", "TTi", self, OPD_CAST(int64_t, dtype));
}
opd_tensor *opd_linalg_diagonal(opd_tensor *a) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_diagonal", "TT", a);
}
opd_tensor *opd_linalg_diagonal_full(opd_tensor *a, int64_t offset, int64_t dim1, int64_t dim2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_diagonal", "TTiii", a, offset, dim1, dim2);
}
opd_tensors opd_split_with_sizes(opd_tensor *self, opd_ints split_sizes) {
    static opd_op *op;
    return opd_given_list(&op, "aten::split_with_sizes", "LTI", self, split_sizes);
}
opd_tensors opd_split(opd_tensor *self, int64_t split_size) {
    static opd_op *op;
    return opd_given_list(&op, "aten::split.Tensor", "LTi", self, split_size);
}
opd_tensors opd_unbind(opd_tensor *self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::unbind.int", "LT", self);
}
opd_tensors opd_split_sizes(opd_tensor *self, opd_ints split_size) {
    static opd_op *op;
    return opd_given_list(&op, "aten::split.sizes", "LTI", self, split_size);
}
opd_tensors opd_split_sizes_full(opd_tensor *self, opd_ints split_size, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::split.sizes", "LTIi", self, split_size, dim);
}
opd_tensors opd_chunk(opd_tensor *self, int64_t chunks) {
    static opd_op *op;
    return opd_given_list(&op, "aten::chunk", "LTi", self, chunks);
}
opd_tensors opd_chunk_full(opd_tensor *self, int64_t chunks, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::chunk", "LTii", self, chunks, dim);
}
opd_tensors opd_unsafe_split(opd_tensor *self, int64_t split_size) {
    static opd_op *op;
    return opd_given_list(&op, "aten::unsafe_split.Tensor", "LTi", self, split_size);
}
opd_tensors opd_unsafe_split_full(opd_tensor *self, int64_t split_size, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::unsafe_split.Tensor", "LTii", self, split_size, dim);
}
opd_tensors opd_unsafe_split_with_sizes(opd_tensor *self, opd_ints split_sizes) {
    static opd_op *op;
    return opd_given_list(&op, "aten::unsafe_split_with_sizes", "LTI", self, split_sizes);
}
opd_tensors opd_unsafe_split_with_sizes_full(opd_tensor *self, opd_ints split_sizes, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::unsafe_split_with_sizes", "LTIi", self, split_sizes, dim);
}
opd_tensors opd_unsafe_chunk(opd_tensor *self, int64_t chunks) {
    static opd_op *op;
    return opd_given_list(&op, "aten::unsafe_chunk", "LTi", self, chunks);
}
opd_tensors opd_unsafe_chunk_full(opd_tensor *self, int64_t chunks, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::unsafe_chunk", "LTii", self, chunks, dim);
}
opd_tensors opd_tensor_split(opd_tensor *self, int64_t sections) {
    static opd_op *op;
    return opd_given_list(&op, "aten::tensor_split.sections", "LTi", self, sections);
}
opd_tensors opd_tensor_split_full(opd_tensor *self, int64_t sections, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::tensor_split.sections", "LTii", self, sections, dim);
}
opd_tensors opd_tensor_split_indices(opd_tensor *self, opd_ints indices) {
    static opd_op *op;
    return opd_given_list(&op, "aten::tensor_split.indices", "LTI", self, indices);
}
opd_tensors opd_tensor_split_indices_full(opd_tensor *self, opd_ints indices, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::tensor_split.indices", "LTIi", self, indices, dim);
}
opd_tensors opd_tensor_split_tensor(opd_tensor *self, opd_tensor *tensor_indices_or_sections) {
    static opd_op *op;
    return opd_given_list(&op, "aten::tensor_split.tensor_indices_or_sections", "LTT", self,
                          tensor_indices_or_sections);
}
opd_tensors opd_tensor_split_tensor_full(opd_tensor *self, opd_tensor *tensor_indices_or_sections, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::tensor_split.tensor_indices_or_sections", "LTTi", self,
                          tensor_indices_or_sections, dim);
}
opd_tensors opd_hsplit(opd_tensor *self, int64_t sections) {
    static opd_op *op;
    return opd_given_list(&op, "aten::hsplit.int", "LTi", self, sections);
}
opd_tensors opd_hsplit_array(opd_tensor *self, opd_ints indices) {
    static opd_op *op;
    return opd_given_list(&op, "aten::hsplit.array", "LTI", self, indices);
}
opd_tensors opd_vsplit(opd_tensor *self, int64_t sections) {
    static opd_op *op;
    return opd_given_list(&op, "aten::vsplit.int", "LTi", self, sections);
}
opd_tensors opd_vsplit_array(opd_tensor *self, opd_ints indices) {
    static opd_op *op;
    return opd_given_list(&op, "aten::vsplit.array", "LTI", self, indices);
}
opd_tensors opd_dsplit(opd_tensor *self, int64_t sections) {
    static opd_op *op;
    return opd_given_list(&op, "aten::dsplit.int", "LTi", self, sections);
}
opd_tensors opd_dsplit_array(opd_tensor *self, opd_ints indices) {
    static opd_op *op;
    return opd_given_list(&op, "aten::dsplit.array", "LTI", self, indices);
}
opd_tensor *opd_narrow_Tensor(opd_tensor *self, int64_t dim, opd_tensor *start, int64_t length) {
    static opd_op *op;
    return opd_given_op(&op, "aten::narrow.Tensor", "TTiTi", self, dim, start, length);
}
opd_tensor *opd_narrow_copy(opd_tensor *self, int64_t dim, int64_t start, int64_t length) {
    static opd_op *op;
    return opd_given_op(&op, "aten::narrow_copy", "TTiii", self, dim, start, length);
}
opd_tensor *opd_moveaxis(opd_tensor *self, int64_t source, int64_t destination) {
    static opd_op *op;
    return opd_given_op(&op, "aten::moveaxis.int", "TTii", self, source, destination);
}
opd_tensor *opd_moveaxis_intlist(opd_tensor *self, opd_ints source, opd_ints destination) {
    static opd_op *op;
    return opd_given_op(&op, "aten::moveaxis.intlist", "TTII", self, source, destination);
}
opd_tensor *opd_swapaxes(opd_tensor *self, int64_t axis0, int64_t axis1) {
    static opd_op *op;
    return opd_given_op(&op, "aten::swapaxes", "TTii", self, axis0, axis1);
}
opd_tensor *opd_swapdims(opd_tensor *self, int64_t dim0, int64_t dim1) {
    static opd_op *op;
    return opd_given_op(&op, "aten::swapdims", "TTii", self, dim0, dim1);
}
opd_tensor *opd_numpy_T(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::numpy_T", "TT", self);
}
opd_tensor *opd_mH(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::mH", "TT", self);
}
opd_tensor *opd_matrix_H(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::matrix_H", "TT", self);
}
opd_tensor *opd_adjoint(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::adjoint", "TT", self);
}
opd_tensor *opd_broadcast_to(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::broadcast_to", "TTI", self, size);
}
opd_tensors opd_meshgrid_indexing(opd_tensors tensors, const char *indexing) {
    static opd_op *op;
    return opd_given_list(&op, "aten::meshgrid.indexing", "LLs", tensors, indexing);
}
opd_tensors opd_broadcast_tensors(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_list(&op, "aten::broadcast_tensors", "LL", tensors);
}
opd_tensor *opd_to_other(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::to.other", "TTT", self, other);
}
opd_tensor *opd_to_other_full(opd_tensor *self, opd_tensor *other, bool non_blocking, bool copy,
                              opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::to.other", "TTTbbV", self, other, non_blocking, copy, memory_format);
}
opd_tensor *opd_to_dtype_layout(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::to.dtype_layout", "TT", self);
}
opd_tensor *opd_to_dtype_layout_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                     opd_value pin_memory, bool non_blocking, bool copy, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::to.dtype_layout", "TTVVVVbbV", self, dtype, layout, device, pin_memory,
                        non_blocking, copy, memory_format);
}
opd_tensor *opd_chalf(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::chalf", "TT", self);
}
opd_tensor *opd_chalf_full(opd_tensor *self, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::chalf", "TTV", self, memory_format);
}
opd_tensor *opd_type_as(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::type_as", "TTT", self, other);
}
opd_tensor *opd_lift_fresh_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::lift_fresh_copy", "TT", self);
}
opd_tensor *opd_lift_fresh(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::lift_fresh", "TT", self);
}
opd_tensor *opd_tile(opd_tensor *self, opd_ints dims) {
    static opd_op *op;
    return opd_given_op(&op, "aten::tile", "TTI", self, dims);
}
opd_tensor *opd_fliplr(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fliplr", "TT", self);
}
opd_tensor *opd_flipud(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::flipud", "TT", self);
}
opd_tensor *opd_roll(opd_tensor *self, opd_ints shifts) {
    static opd_op *op;
    return opd_given_op(&op, "aten::roll", "TTI", self, shifts);
}
opd_tensor *opd_rot90(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rot90", "TT", self);
}
opd_tensor *opd_rot90_full(opd_tensor *self, int64_t k, opd_ints dims) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rot90", "TTiI", self, k, dims);
}
opd_tensor *opd_transpose_(opd_tensor *self, int64_t dim0, int64_t dim1) {
    static opd_op *op;
    return opd_given_op(&op, "aten::transpose_", "TTii", self, dim0, dim1);
}
opd_tensor *opd_t_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::t_", "TT", self);
}
opd_tensor *opd_unsqueeze_(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::unsqueeze_", "TTi", self, dim);
}
opd_tensor *opd_squeeze_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::squeeze_", "TT", self);
}
opd_tensor *opd_squeeze_dim_(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::squeeze_.dim", "TTi", self, dim);
}
opd_tensor *opd_squeeze_dims_(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::squeeze_.dims", "TTI", self, dim);
}
opd_tensor *opd_swapaxes_(opd_tensor *self, int64_t axis0, int64_t axis1) {
    static opd_op *op;
    return opd_given_op(&op, "aten::swapaxes_", "TTii", self, axis0, axis1);
}
opd_tensor *opd_swapdims_(opd_tensor *self, int64_t dim0, int64_t dim1) {
    static opd_op *op;
    return opd_given_op(&op, "aten::swapdims_", "TTii", self, dim0, dim1);
}
opd_tensor *opd_as_strided_(opd_tensor *self, opd_ints size, opd_ints stride) {
    static opd_op *op;
    return opd_given_op(&op, "aten::as_strided_", "TTII", self, size, stride);
}
opd_tensor *opd_as_strided_full_(opd_tensor *self, opd_ints size, opd_ints stride, opd_value storage_offset) {
    static opd_op *op;
    return opd_given_op(&op, "aten::as_strided_", "TTIIV", self, size, stride, storage_offset);
}
opd_tensor *opd_detach_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::detach_", "TT", self);
}
opd_tensor *opd_resize_full_(opd_tensor *self, opd_ints size, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::resize_", "TTIV", self, size, memory_format);
}
opd_tensor *opd_resize_as_(opd_tensor *self, opd_tensor *the_template) {
    static opd_op *op;
    return opd_given_op(&op, "aten::resize_as_", "TTT", self, the_template);
}
opd_tensor *opd_resize_as_full_(opd_tensor *self, opd_tensor *the_template, opd_value memory_format) {
    static opd_op *op;
    return opd_given_op(&op, "aten::resize_as_", "TTTV", self, the_template, memory_format);
}
opd_value opd_is_floating_point(opd_tensor *self) {
    static opd_op *op;
    return opd_given_value(&op, "aten::is_floating_point", "VT", self);
}
opd_value opd_is_complex(opd_tensor *self) {
    static opd_op *op;
    return opd_given_value(&op, "aten::is_complex", "VT", self);
}
opd_value opd_is_nonzero(opd_tensor *self) {
    static opd_op *op;
    return opd_given_value(&op, "aten::is_nonzero", "VT", self);
}
opd_value opd_sym_size(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_value(&op, "aten::sym_size.int", "VTi", self, dim);
}
opd_value opd_sym_stride(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_value(&op, "aten::sym_stride.int", "VTi", self, dim);
}
opd_value opd_sym_numel(opd_tensor *self) {
    static opd_op *op;
    return opd_given_value(&op, "aten::sym_numel", "VT", self);
}
opd_value opd_sym_is_contiguous(opd_tensor *self) {
    static opd_op *op;
    return opd_given_value(&op, "aten::sym_is_contiguous", "VT", self);
}
opd_value opd_sym_is_contiguous_full(opd_tensor *self, int64_t memory_format) {
    static opd_op *op;
    return opd_given_value(&op, "aten::sym_is_contiguous", "VTi", self, memory_format);
}
opd_value opd_sym_storage_offset(opd_tensor *self) {
    static opd_op *op;
    return opd_given_value(&op, "aten::sym_storage_offset", "VT", self);
}
int opd_assert_tensor_metadata(opd_tensor *a, opd_ints size, opd_ints stride, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_assert_tensor_metadata", "vTVVV", a, opd_value_optional_ints(size),
                         opd_value_optional_ints(stride), opd_value_dtype(dtype));
}
int opd_assert_tensor_metadata_full(opd_tensor *a, opd_ints size, opd_ints stride, opd_value dtype, opd_value device,
                                    opd_value layout) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_assert_tensor_metadata", "vTVVVVV", a, opd_value_optional_ints(size),
                         opd_value_optional_ints(stride), dtype, device, layout);
}
int opd_assert_scalar(opd_value self, const char *assert_msg) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_assert_scalar", "vVs", self, assert_msg);
}
opd_tensor *opd_functional_assert_scalar(opd_value self, const char *assert_msg, opd_tensor *dep_token) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_functional_assert_scalar", "TVsT", self, assert_msg, dep_token);
}
int opd_assert_async(opd_tensor *self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_assert_async", "vT", self);
}
opd_tensor *opd_functional_assert_async_msg(opd_tensor *self, const char *assert_msg, opd_tensor *dep_token) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_functional_assert_async.msg", "TTsT", self, assert_msg, dep_token);
}
int opd_sym_constrain_range(opd_value size) {
    static opd_op *op;
    return opd_given_all(&op, "aten::sym_constrain_range", "vV", size);
}
int opd_sym_constrain_range_full(opd_value size, opd_value min, opd_value max) {
    static opd_op *op;
    return opd_given_all(&op, "aten::sym_constrain_range", "vVVV", size, min, max);
}
int opd_sym_constrain_range_for_size(opd_value size) {
    static opd_op *op;
    return opd_given_all(&op, "aten::sym_constrain_range_for_size", "vV", size);
}
int opd_sym_constrain_range_for_size_full(opd_value size, opd_value min, opd_value max) {
    static opd_op *op;
    return opd_given_all(&op, "aten::sym_constrain_range_for_size", "vVVV", size, min, max);
}
opd_tensor *opd_functional_sym_constrain_range(opd_value size, opd_value min, opd_value max, opd_tensor *dep_token) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_functional_sym_constrain_range", "TVVVT", size, min, max, dep_token);
}
opd_tensor *opd_functional_sym_constrain_range_for_size(opd_value size, opd_value min, opd_value max,
                                        opd_tensor *dep_token) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_functional_sym_constrain_range_for_size", "TVVVT", size, min, max, dep_token);
}
opd_value opd_is_same_size(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_value(&op, "aten::is_same_size", "VTT", self, other);
}
opd_value opd_size_int(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_value(&op, "aten::size.int", "VTi", self, dim);
}
opd_value opd_stride_int(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_value(&op, "aten::stride.int", "VTi", self, dim);
}
opd_value opd_numel_int(opd_tensor *self) {
    static opd_op *op;
    return opd_given_value(&op, "aten::numel", "VT", self);
}
opd_value opd_dim_int(opd_tensor *self) {
    static opd_op *op;
    return opd_given_value(&op, "aten::dim", "VT", self);
}
opd_tensor *opd_view_copy(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::view_copy", "TTI", self, size);
}
opd_tensor *opd_view_copy_dtype(opd_tensor *self, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::view_copy.dtype", "TTi", self, OPD_CAST(int64_t, dtype));
}
opd_tensor *opd_reshape_alias_copy(opd_tensor *self, opd_ints size, opd_ints stride) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_reshape_alias_copy", "TTII", self, size, stride);
}
opd_tensor *opd_expand_copy(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::expand_copy", "TTI", self, size);
}
opd_tensor *opd_expand_copy_full(opd_tensor *self, opd_ints size, bool implicit) {
    static opd_op *op;
    return opd_given_op(&op, "aten::expand_copy", "TTIb", self, size, implicit);
}
opd_tensor *opd_transpose_copy(opd_tensor *self, int64_t dim0, int64_t dim1) {
    static opd_op *op;
    return opd_given_op(&op, "aten::transpose_copy.int", "TTii", self, dim0, dim1);
}
opd_tensor *opd_t_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::t_copy", "TT", self);
}
opd_tensor *opd_permute_copy(opd_tensor *self, opd_ints dims) {
    static opd_op *op;
    return opd_given_op(&op, "aten::permute_copy", "TTI", self, dims);
}
opd_tensor *opd_select_copy(opd_tensor *self, int64_t dim, int64_t index) {
    static opd_op *op;
    return opd_given_op(&op, "aten::select_copy.int", "TTii", self, dim, index);
}
opd_tensor *opd_slice_copy(opd_tensor *self, int64_t dim, opd_value start, opd_value end, int64_t step) {
    static opd_op *op;
    return opd_given_op(&op, "aten::slice_copy.Tensor", "TTiVVi", self, dim, start, end, step);
}
opd_tensor *opd_unsqueeze_copy(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::unsqueeze_copy", "TTi", self, dim);
}
opd_tensor *opd_squeeze_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::squeeze_copy", "TT", self);
}
opd_tensor *opd_squeeze_copy_dim(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::squeeze_copy.dim", "TTi", self, dim);
}
opd_tensor *opd_squeeze_copy_dims(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::squeeze_copy.dims", "TTI", self, dim);
}
opd_tensor *opd_detach_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::detach_copy", "TT", self);
}
opd_tensor *opd_alias_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::alias_copy", "TT", self);
}
opd_tensor *opd_as_strided_copy(opd_tensor *self, opd_ints size, opd_ints stride) {
    static opd_op *op;
    return opd_given_op(&op, "aten::as_strided_copy", "TTII", self, size, stride);
}
opd_tensor *opd_as_strided_copy_full(opd_tensor *self, opd_ints size, opd_ints stride, opd_value storage_offset) {
    static opd_op *op;
    return opd_given_op(&op, "aten::as_strided_copy", "TTIIV", self, size, stride, storage_offset);
}
opd_tensor *opd_diagonal_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::diagonal_copy", "TT", self);
}
opd_tensor *opd_unfold_copy(opd_tensor *self, int64_t dimension, int64_t size, int64_t step) {
    static opd_op *op;
    return opd_given_op(&op, "aten::unfold_copy", "TTiii", self, dimension, size, step);
}
opd_tensors opd_split_copy(opd_tensor *self, int64_t split_size) {
    static opd_op *op;
    return opd_given_list(&op, "aten::split_copy.Tensor", "LTi", self, split_size);
}
opd_tensors opd_split_copy_full(opd_tensor *self, int64_t split_size, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::split_copy.Tensor", "LTii", self, split_size, dim);
}
opd_tensors opd_split_with_sizes_copy(opd_tensor *self, opd_ints split_sizes) {
    static opd_op *op;
    return opd_given_list(&op, "aten::split_with_sizes_copy", "LTI", self, split_sizes);
}
opd_tensors opd_split_with_sizes_copy_full(opd_tensor *self, opd_ints split_sizes, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::split_with_sizes_copy", "LTIi", self, split_sizes, dim);
}
opd_tensors opd_unbind_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::unbind_copy.int", "LT", self);
}
opd_tensors opd_unbind_copy_full(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::unbind_copy.int", "LTi", self, dim);
}
opd_tensor *opd_view_as_real_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::view_as_real_copy", "TT", self);
}
opd_tensor *opd_view_as_complex_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::view_as_complex_copy", "TT", self);
}
opd_tensor *opd__conj_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_conj_copy", "TT", self);
}
opd_tensor *opd__neg_view_copy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_neg_view_copy", "TT", self);
}
opd_tensor *opd_conj_physical_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conj_physical_", "TT", self);
}
opd_tensor *opd_angle(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::angle", "TT", self);
}
opd_tensor *opd_polar(opd_tensor *abs, opd_tensor *angle) {
    static opd_op *op;
    return opd_given_op(&op, "aten::polar", "TTT", abs, angle);
}
opd_tensor *opd_positive(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::positive", "TT", self);
}
opd_tensor *opd_diag(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::diag", "TT", self);
}
opd_tensor *opd_diag_full(opd_tensor *self, int64_t diagonal) {
    static opd_op *op;
    return opd_given_op(&op, "aten::diag", "TTi", self, diagonal);
}
opd_tensor *opd_diagflat(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::diagflat", "TT", self);
}
opd_tensor *opd_diagflat_full(opd_tensor *self, int64_t offset) {
    static opd_op *op;
    return opd_given_op(&op, "aten::diagflat", "TTi", self, offset);
}
opd_tensor *opd_atleast_1d(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::atleast_1d", "TT", self);
}
opd_tensor *opd_atleast_2d(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::atleast_2d", "TT", self);
}
opd_tensor *opd_atleast_3d(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::atleast_3d", "TT", self);
}
opd_tensors opd_atleast_1d_Sequence(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_list(&op, "aten::atleast_1d.Sequence", "LL", tensors);
}
opd_tensors opd_atleast_2d_Sequence(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_list(&op, "aten::atleast_2d.Sequence", "LL", tensors);
}
opd_tensors opd_atleast_3d_Sequence(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_list(&op, "aten::atleast_3d.Sequence", "LL", tensors);
}
opd_tensor *opd_exp_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::exp_", "TT", self);
}
opd_tensor *opd_exp2_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::exp2_", "TT", self);
}
opd_tensor *opd_expm1(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::expm1", "TT", self);
}
opd_tensor *opd_expm1_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::expm1_", "TT", self);
}
opd_tensor *opd_log_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::log_", "TT", self);
}
opd_tensor *opd_log2_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::log2_", "TT", self);
}
opd_tensor *opd_log10(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::log10", "TT", self);
}
opd_tensor *opd_log10_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::log10_", "TT", self);
}
opd_tensor *opd_log1p_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::log1p_", "TT", self);
}
opd_tensor *opd_sqrt_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sqrt_", "TT", self);
}
opd_tensor *opd_rsqrt_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rsqrt_", "TT", self);
}
opd_tensor *opd_reciprocal_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::reciprocal_", "TT", self);
}
opd_tensor *opd_square_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::square_", "TT", self);
}
opd_tensor *opd_sin_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sin_", "TT", self);
}
opd_tensor *opd_cos_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cos_", "TT", self);
}
opd_tensor *opd_tan(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::tan", "TT", self);
}
opd_tensor *opd_tan_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::tan_", "TT", self);
}
opd_tensor *opd_asin(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::asin", "TT", self);
}
opd_tensor *opd_asin_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::asin_", "TT", self);
}
opd_tensor *opd_acos(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::acos", "TT", self);
}
opd_tensor *opd_acos_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::acos_", "TT", self);
}
opd_tensor *opd_atan(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::atan", "TT", self);
}
opd_tensor *opd_atan_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::atan_", "TT", self);
}
opd_tensor *opd_sinh_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sinh_", "TT", self);
}
opd_tensor *opd_cosh_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cosh_", "TT", self);
}
opd_tensor *opd_asinh(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::asinh", "TT", self);
}
opd_tensor *opd_asinh_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::asinh_", "TT", self);
}
opd_tensor *opd_acosh(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::acosh", "TT", self);
}
opd_tensor *opd_acosh_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::acosh_", "TT", self);
}
opd_tensor *opd_atanh(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::atanh", "TT", self);
}
opd_tensor *opd_atanh_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::atanh_", "TT", self);
}
opd_tensor *opd_tanh_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::tanh_", "TT", self);
}
opd_tensor *opd_erf(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::erf", "TT", self);
}
opd_tensor *opd_erf_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::erf_", "TT", self);
}
opd_tensor *opd_erfc_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::erfc_", "TT", self);
}
opd_tensor *opd_sigmoid_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sigmoid_", "TT", self);
}
opd_tensor *opd_sinc(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sinc", "TT", self);
}
opd_tensor *opd_sinc_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sinc_", "TT", self);
}
opd_tensor *opd_floor_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::floor_", "TT", self);
}
opd_tensor *opd_frac(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::frac", "TT", self);
}
opd_tensor *opd_frac_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::frac_", "TT", self);
}
opd_tensor *opd_sign_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sign_", "TT", self);
}
opd_tensor *opd_abs_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::abs_", "TT", self);
}
opd_tensor *opd_hardsigmoid(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hardsigmoid", "TT", self);
}
opd_tensor *opd_hardsigmoid_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hardsigmoid_", "TT", self);
}
opd_tensor *opd_hardswish_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hardswish_", "TT", self);
}
opd_tensor *opd_mish(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::mish", "TT", self);
}
opd_tensor *opd_mish_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::mish_", "TT", self);
}
opd_tensor *opd_ceil_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ceil_", "TT", self);
}
opd_tensor *opd_round_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::round_", "TT", self);
}
opd_tensor *opd_trunc_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::trunc_", "TT", self);
}
opd_tensor *opd_sgn_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sgn_", "TT", self);
}
opd_tensor *opd_isnan_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isnan_", "TT", self);
}
opd_tensor *opd_isinf_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isinf_", "TT", self);
}
opd_tensor *opd_isfinite_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isfinite_", "TT", self);
}
opd_tensor *opd_isposinf(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isposinf", "TT", self);
}
opd_tensor *opd_isposinf_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isposinf_", "TT", self);
}
opd_tensor *opd_isneginf(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isneginf", "TT", self);
}
opd_tensor *opd_isneginf_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isneginf_", "TT", self);
}
opd_tensor *opd_signbit(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::signbit", "TT", self);
}
opd_tensor *opd_signbit_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::signbit_", "TT", self);
}
opd_tensor *opd_logical_not_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logical_not_", "TT", self);
}
opd_tensor *opd_neg_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::neg_", "TT", self);
}
opd_tensor *opd_bitwise_not(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bitwise_not", "TT", self);
}
opd_tensor *opd_bitwise_not_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bitwise_not_", "TT", self);
}
opd_tensor *opd_relu_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::relu_", "TT", self);
}
opd_tensor *opd_silu_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::silu_", "TT", self);
}
opd_tensor *opd_clamp(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp", "TT", self);
}
opd_tensor *opd_clamp_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp_", "TT", self);
}
opd_tensor *opd_clamp_full_(opd_tensor *self, opd_value min, opd_value max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp_", "TTVV", self, min, max);
}
opd_tensor *opd_clamp_min_(opd_tensor *self, opd_value min) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp_min_", "TTV", self, min);
}
opd_tensor *opd_clamp_max_(opd_tensor *self, opd_value max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp_max_", "TTV", self, max);
}
opd_tensor *opd_hardtanh(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hardtanh", "TT", self);
}
opd_tensor *opd_hardtanh_full(opd_tensor *self, opd_value min_val, opd_value max_val) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hardtanh", "TTVV", self, min_val, max_val);
}
opd_tensor *opd_hardtanh_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hardtanh_", "TT", self);
}
opd_tensor *opd_hardtanh_full_(opd_tensor *self, opd_value min_val, opd_value max_val) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hardtanh_", "TTVV", self, min_val, max_val);
}
opd_tensor *opd_relu6_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::relu6_", "TT", self);
}
opd_tensor *opd_gelu_full(opd_tensor *self, const char *approximate) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gelu", "TTs", self, approximate);
}
opd_tensor *opd_gelu_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gelu_", "TT", self);
}
opd_tensor *opd_gelu_full_(opd_tensor *self, const char *approximate) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gelu_", "TTs", self, approximate);
}
opd_tensor *opd_leaky_relu(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::leaky_relu", "TT", self);
}
opd_tensor *opd_leaky_relu_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::leaky_relu_", "TT", self);
}
opd_tensor *opd_leaky_relu_full_(opd_tensor *self, opd_value negative_slope) {
    static opd_op *op;
    return opd_given_op(&op, "aten::leaky_relu_", "TTV", self, negative_slope);
}
opd_tensor *opd_elu(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::elu", "TT", self);
}
opd_tensor *opd_elu_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::elu_", "TT", self);
}
opd_tensor *opd_elu_full_(opd_tensor *self, opd_value alpha, opd_value scale, opd_value input_scale) {
    static opd_op *op;
    return opd_given_op(&op, "aten::elu_", "TTVVV", self, alpha, scale, input_scale);
}
opd_tensor *opd_selu(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::selu", "TT", self);
}
opd_tensor *opd_selu_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::selu_", "TT", self);
}
opd_tensor *opd_celu(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::celu", "TT", self);
}
opd_tensor *opd_celu_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::celu_", "TT", self);
}
opd_tensor *opd_celu_full_(opd_tensor *self, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::celu_", "TTV", self, alpha);
}
opd_tensor *opd_softplus_full(opd_tensor *self, opd_value beta, opd_value threshold) {
    static opd_op *op;
    return opd_given_op(&op, "aten::softplus", "TTVV", self, beta, threshold);
}
opd_tensor *opd_threshold(opd_tensor *self, opd_value threshold, opd_value value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::threshold", "TTVV", self, threshold, value);
}
opd_tensor *opd_threshold_(opd_tensor *self, opd_value threshold, opd_value value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::threshold_", "TTVV", self, threshold, value);
}
opd_tensor *opd_round_decimals(opd_tensor *self, int64_t decimals) {
    static opd_op *op;
    return opd_given_op(&op, "aten::round.decimals", "TTi", self, decimals);
}
opd_tensor *opd_round_decimals_(opd_tensor *self, int64_t decimals) {
    static opd_op *op;
    return opd_given_op(&op, "aten::round_.decimals", "TTi", self, decimals);
}
opd_tensor *opd_softshrink(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::softshrink", "TT", self);
}
opd_tensor *opd_softshrink_full(opd_tensor *self, opd_value lambd) {
    static opd_op *op;
    return opd_given_op(&op, "aten::softshrink", "TTV", self, lambd);
}
opd_tensor *opd_hardshrink(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hardshrink", "TT", self);
}
opd_tensor *opd_hardshrink_full(opd_tensor *self, opd_value lambd) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hardshrink", "TTV", self, lambd);
}
opd_tensor *opd_nan_to_num(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nan_to_num", "TT", self);
}
opd_tensor *opd_nan_to_num_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nan_to_num_", "TT", self);
}
opd_tensor *opd_nan_to_num_full_(opd_tensor *self, opd_value nan, opd_value posinf, opd_value neginf) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nan_to_num_", "TTVVV", self, nan, posinf, neginf);
}
opd_tensor *opd_deg2rad(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::deg2rad", "TT", self);
}
opd_tensor *opd_deg2rad_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::deg2rad_", "TT", self);
}
opd_tensor *opd_rad2deg(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rad2deg", "TT", self);
}
opd_tensor *opd_rad2deg_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rad2deg_", "TT", self);
}
opd_tensor *opd_logit(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logit", "TT", self);
}
opd_tensor *opd_logit_full(opd_tensor *self, opd_value eps) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logit", "TTV", self, eps);
}
opd_tensor *opd_logit_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logit_", "TT", self);
}
opd_tensor *opd_logit_full_(opd_tensor *self, opd_value eps) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logit_", "TTV", self, eps);
}
opd_tensor *opd_logit_backward(opd_tensor *grad_output, opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logit_backward", "TTT", grad_output, self);
}
opd_tensor *opd_add_Scalar_full(opd_tensor *self, opd_value other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::add.Scalar", "TTVV", self, other, alpha);
}
opd_tensor *opd_add_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::add_.Scalar", "TTV", self, other);
}
opd_tensor *opd_add_Scalar_full_(opd_tensor *self, opd_value other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::add_.Scalar", "TTVV", self, other, alpha);
}
opd_tensor *opd_sub_full(opd_tensor *self, opd_tensor *other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sub.Tensor", "TTTV", self, other, alpha);
}
opd_tensor *opd_sub_full_(opd_tensor *self, opd_tensor *other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sub_.Tensor", "TTTV", self, other, alpha);
}
opd_tensor *opd_sub_Scalar_full(opd_tensor *self, opd_value other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sub.Scalar", "TTVV", self, other, alpha);
}
opd_tensor *opd_sub_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sub_.Scalar", "TTV", self, other);
}
opd_tensor *opd_sub_Scalar_full_(opd_tensor *self, opd_value other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sub_.Scalar", "TTVV", self, other, alpha);
}
opd_tensor *opd_rsub(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rsub.Tensor", "TTT", self, other);
}
opd_tensor *opd_rsub_full(opd_tensor *self, opd_tensor *other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rsub.Tensor", "TTTV", self, other, alpha);
}
opd_tensor *opd_rsub_Scalar_full(opd_tensor *self, opd_value other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rsub.Scalar", "TTVV", self, other, alpha);
}
opd_tensor *opd_div_Tensor_mode_(opd_tensor *self, opd_tensor *other, const char *rounding_mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::div_.Tensor_mode", "TTTs", self, other, rounding_mode);
}
opd_tensor *opd_div_Scalar_mode_(opd_tensor *self, opd_value other, const char *rounding_mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::div_.Scalar_mode", "TTVs", self, other, rounding_mode);
}
opd_tensor *opd_floor_divide(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::floor_divide", "TTT", self, other);
}
opd_tensor *opd_floor_divide_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::floor_divide_.Tensor", "TTT", self, other);
}
opd_tensor *opd_floor_divide_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::floor_divide.Scalar", "TTV", self, other);
}
opd_tensor *opd_floor_divide_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::floor_divide_.Scalar", "TTV", self, other);
}
opd_tensor *opd_fmod(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fmod.Tensor", "TTT", self, other);
}
opd_tensor *opd_fmod_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fmod_.Tensor", "TTT", self, other);
}
opd_tensor *opd_fmod_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fmod_.Scalar", "TTV", self, other);
}
opd_tensor *opd_remainder_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::remainder_.Tensor", "TTT", self, other);
}
opd_tensor *opd_remainder_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::remainder_.Scalar", "TTV", self, other);
}
opd_tensor *opd_remainder_Scalar_Tensor(opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::remainder.Scalar_Tensor", "TVT", self, other);
}
opd_tensor *opd_pow_Tensor_Tensor_(opd_tensor *self, opd_tensor *exponent) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pow_.Tensor", "TTT", self, exponent);
}
opd_tensor *opd_pow_Tensor_Scalar_(opd_tensor *self, opd_value exponent) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pow_.Scalar", "TTV", self, exponent);
}
opd_tensor *opd_fmax(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fmax", "TTT", self, other);
}
opd_tensor *opd_fmin(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fmin", "TTT", self, other);
}
opd_tensor *opd_clamp_Tensor(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp.Tensor", "TT", self);
}
opd_tensor *opd_clamp_Tensor_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp_.Tensor", "TT", self);
}
opd_tensor *opd_clamp_Tensor_full_(opd_tensor *self, opd_tensor *min, opd_tensor *max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp_.Tensor", "TTTT", self, min, max);
}
opd_tensor *opd_clamp_min_Tensor(opd_tensor *self, opd_tensor *min) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp_min.Tensor", "TTT", self, min);
}
opd_tensor *opd_clamp_min_Tensor_(opd_tensor *self, opd_tensor *min) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp_min_.Tensor", "TTT", self, min);
}
opd_tensor *opd_clamp_max_Tensor(opd_tensor *self, opd_tensor *max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp_max.Tensor", "TTT", self, max);
}
opd_tensor *opd_clamp_max_Tensor_(opd_tensor *self, opd_tensor *max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clamp_max_.Tensor", "TTT", self, max);
}
opd_tensor *opd_eq_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::eq_.Tensor", "TTT", self, other);
}
opd_tensor *opd_eq_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::eq_.Scalar", "TTV", self, other);
}
opd_tensor *opd_ne_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ne_.Tensor", "TTT", self, other);
}
opd_tensor *opd_ne_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ne_.Scalar", "TTV", self, other);
}
opd_tensor *opd_lt_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::lt_.Tensor", "TTT", self, other);
}
opd_tensor *opd_lt_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::lt_.Scalar", "TTV", self, other);
}
opd_tensor *opd_le_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::le_.Tensor", "TTT", self, other);
}
opd_tensor *opd_le_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::le_.Scalar", "TTV", self, other);
}
opd_tensor *opd_gt_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gt_.Tensor", "TTT", self, other);
}
opd_tensor *opd_gt_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gt_.Scalar", "TTV", self, other);
}
opd_tensor *opd_ge_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ge_.Tensor", "TTT", self, other);
}
opd_tensor *opd_ge_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ge_.Scalar", "TTV", self, other);
}
opd_tensor *opd_logical_and_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logical_and_", "TTT", self, other);
}
opd_tensor *opd_logical_or_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logical_or_", "TTT", self, other);
}
opd_tensor *opd_logical_xor_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logical_xor_", "TTT", self, other);
}
opd_tensor *opd_bitwise_and_Scalar_Tensor(opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bitwise_and.Scalar_Tensor", "TVT", self, other);
}
opd_tensor *opd_bitwise_or_Scalar_Tensor(opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bitwise_or.Scalar_Tensor", "TVT", self, other);
}
opd_tensor *opd_bitwise_xor_Scalar_Tensor(opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bitwise_xor.Scalar_Tensor", "TVT", self, other);
}
opd_tensor *opd_bitwise_left_shift_Scalar_Tensor(opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bitwise_left_shift.Scalar_Tensor", "TVT", self, other);
}
opd_tensor *opd_bitwise_right_shift_Scalar_Tensor(opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bitwise_right_shift.Scalar_Tensor", "TVT", self, other);
}
opd_tensor *opd_and_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__and__.Tensor", "TTT", self, other);
}
opd_tensor *opd_iand_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__iand__.Tensor", "TTT", self, other);
}
opd_tensor *opd_and_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__and__.Scalar", "TTV", self, other);
}
opd_tensor *opd_iand_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__iand__.Scalar", "TTV", self, other);
}
opd_tensor *opd_or_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__or__.Tensor", "TTT", self, other);
}
opd_tensor *opd_ior_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__ior__.Tensor", "TTT", self, other);
}
opd_tensor *opd_or_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__or__.Scalar", "TTV", self, other);
}
opd_tensor *opd_ior_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__ior__.Scalar", "TTV", self, other);
}
opd_tensor *opd_xor_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__xor__.Tensor", "TTT", self, other);
}
opd_tensor *opd_ixor_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__ixor__.Tensor", "TTT", self, other);
}
opd_tensor *opd_xor_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__xor__.Scalar", "TTV", self, other);
}
opd_tensor *opd_ixor_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__ixor__.Scalar", "TTV", self, other);
}
opd_tensor *opd_lshift_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__lshift__.Tensor", "TTT", self, other);
}
opd_tensor *opd_ilshift_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__ilshift__.Tensor", "TTT", self, other);
}
opd_tensor *opd_lshift_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__lshift__.Scalar", "TTV", self, other);
}
opd_tensor *opd_ilshift_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__ilshift__.Scalar", "TTV", self, other);
}
opd_tensor *opd_rshift_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__rshift__.Tensor", "TTT", self, other);
}
opd_tensor *opd_irshift_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__irshift__.Tensor", "TTT", self, other);
}
opd_tensor *opd_rshift_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__rshift__.Scalar", "TTV", self, other);
}
opd_tensor *opd_irshift_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::__irshift__.Scalar", "TTV", self, other);
}
opd_tensor *opd_gcd(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gcd", "TTT", self, other);
}
opd_tensor *opd_gcd_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gcd_", "TTT", self, other);
}
opd_tensor *opd_lcm(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::lcm", "TTT", self, other);
}
opd_tensor *opd_lcm_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::lcm_", "TTT", self, other);
}
opd_tensor *opd_atan2_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::atan2_", "TTT", self, other);
}
opd_tensor *opd_hypot(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hypot", "TTT", self, other);
}
opd_tensor *opd_hypot_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hypot_", "TTT", self, other);
}
opd_tensor *opd_xlogy_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::xlogy_.Tensor", "TTT", self, other);
}
opd_tensor *opd_xlogy_Scalar_Other(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::xlogy.Scalar_Other", "TTV", self, other);
}
opd_tensor *opd_xlogy_Scalar_Other_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::xlogy_.Scalar_Other", "TTV", self, other);
}
opd_tensor *opd_xlogy_Scalar_Self(opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::xlogy.Scalar_Self", "TVT", self, other);
}
opd_tensor *opd_logaddexp(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logaddexp", "TTT", self, other);
}
opd_tensor *opd_logaddexp2(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logaddexp2", "TTT", self, other);
}
opd_tensor *opd_copysign_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::copysign_.Tensor", "TTT", self, other);
}
opd_tensor *opd_copysign_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::copysign.Scalar", "TTV", self, other);
}
opd_tensor *opd_copysign_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::copysign_.Scalar", "TTV", self, other);
}
opd_tensor *opd_nextafter(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nextafter", "TTT", self, other);
}
opd_tensor *opd_nextafter_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nextafter_", "TTT", self, other);
}
opd_tensor *opd_heaviside(opd_tensor *self, opd_tensor *values) {
    static opd_op *op;
    return opd_given_op(&op, "aten::heaviside", "TTT", self, values);
}
opd_tensor *opd_heaviside_(opd_tensor *self, opd_tensor *values) {
    static opd_op *op;
    return opd_given_op(&op, "aten::heaviside_", "TTT", self, values);
}
opd_tensor *opd_where_ScalarSelf(opd_tensor *condition, opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::where.ScalarSelf", "TTVT", condition, self, other);
}
opd_tensor *opd_masked_fill(opd_tensor *self, opd_tensor *mask, opd_tensor *value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::masked_fill.Tensor", "TTTT", self, mask, value);
}
opd_tensor *opd_masked_fill_(opd_tensor *self, opd_tensor *mask, opd_tensor *value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::masked_fill_.Tensor", "TTTT", self, mask, value);
}
opd_tensor *opd_lerp_Scalar_(opd_tensor *self, opd_tensor *end, opd_value weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::lerp_.Scalar", "TTTV", self, end, weight);
}
opd_tensor *opd_lerp_(opd_tensor *self, opd_tensor *end, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::lerp_.Tensor", "TTTT", self, end, weight);
}
opd_tensor *opd_addcmul(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addcmul", "TTTT", self, tensor1, tensor2);
}
opd_tensor *opd_addcmul_full(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addcmul", "TTTTV", self, tensor1, tensor2, value);
}
opd_tensor *opd_addcmul_(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addcmul_", "TTTT", self, tensor1, tensor2);
}
opd_tensor *opd_addcmul_full_(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addcmul_", "TTTTV", self, tensor1, tensor2, value);
}
opd_tensor *opd_addcdiv(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addcdiv", "TTTT", self, tensor1, tensor2);
}
opd_tensor *opd_addcdiv_full(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addcdiv", "TTTTV", self, tensor1, tensor2, value);
}
opd_tensor *opd_addcdiv_(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addcdiv_", "TTTT", self, tensor1, tensor2);
}
opd_tensor *opd_addcdiv_full_(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addcdiv_", "TTTTV", self, tensor1, tensor2, value);
}
opd_tensor *opd_gelu_backward(opd_tensor *grad_output, opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gelu_backward", "TTT", grad_output, self);
}
opd_tensor *opd_true_divide(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::true_divide.Tensor", "TTT", self, other);
}
opd_tensor *opd_true_divide_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::true_divide_.Tensor", "TTT", self, other);
}
opd_tensor *opd_true_divide_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::true_divide.Scalar", "TTV", self, other);
}
opd_tensor *opd_true_divide_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::true_divide_.Scalar", "TTV", self, other);
}
opd_tensor *opd_ldexp(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ldexp.Tensor", "TTT", self, other);
}
opd_tensor *opd_ldexp_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ldexp_", "TTT", self, other);
}
opd_tensor *opd_absolute(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::absolute", "TT", self);
}
opd_tensor *opd_absolute_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::absolute_", "TT", self);
}
opd_tensor *opd_arccos(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arccos", "TT", self);
}
opd_tensor *opd_arccos_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arccos_", "TT", self);
}
opd_tensor *opd_arccosh(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arccosh", "TT", self);
}
opd_tensor *opd_arccosh_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arccosh_", "TT", self);
}
opd_tensor *opd_arcsin(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arcsin", "TT", self);
}
opd_tensor *opd_arcsin_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arcsin_", "TT", self);
}
opd_tensor *opd_arcsinh(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arcsinh", "TT", self);
}
opd_tensor *opd_arcsinh_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arcsinh_", "TT", self);
}
opd_tensor *opd_arctan(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arctan", "TT", self);
}
opd_tensor *opd_arctan_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arctan_", "TT", self);
}
opd_tensor *opd_arctanh(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arctanh", "TT", self);
}
opd_tensor *opd_arctanh_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arctanh_", "TT", self);
}
opd_tensor *opd_fix(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fix", "TT", self);
}
opd_tensor *opd_fix_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fix_", "TT", self);
}
opd_tensor *opd_negative(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::negative", "TT", self);
}
opd_tensor *opd_negative_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::negative_", "TT", self);
}
opd_tensor *opd_arctan2(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arctan2", "TTT", self, other);
}
opd_tensor *opd_arctan2_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::arctan2_", "TTT", self, other);
}
opd_tensor *opd_clip(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clip", "TT", self);
}
opd_tensor *opd_clip_full(opd_tensor *self, opd_value min, opd_value max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clip", "TTVV", self, min, max);
}
opd_tensor *opd_clip_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clip_", "TT", self);
}
opd_tensor *opd_clip_full_(opd_tensor *self, opd_value min, opd_value max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clip_", "TTVV", self, min, max);
}
opd_tensor *opd_clip_Tensor(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clip.Tensor", "TT", self);
}
opd_tensor *opd_clip_Tensor_full(opd_tensor *self, opd_tensor *min, opd_tensor *max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clip.Tensor", "TTTT", self, min, max);
}
opd_tensor *opd_clip_Tensor_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clip_.Tensor", "TT", self);
}
opd_tensor *opd_clip_Tensor_full_(opd_tensor *self, opd_tensor *min, opd_tensor *max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::clip_.Tensor", "TTTT", self, min, max);
}
opd_tensor *opd_subtract_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::subtract.Tensor", "TTT", self, other);
}
opd_tensor *opd_subtract_Tensor_full(opd_tensor *self, opd_tensor *other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::subtract.Tensor", "TTTV", self, other, alpha);
}
opd_tensor *opd_subtract_Tensor_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::subtract_.Tensor", "TTT", self, other);
}
opd_tensor *opd_subtract_Tensor_full_(opd_tensor *self, opd_tensor *other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::subtract_.Tensor", "TTTV", self, other, alpha);
}
opd_tensor *opd_subtract_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::subtract.Scalar", "TTV", self, other);
}
opd_tensor *opd_subtract_Scalar_full(opd_tensor *self, opd_value other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::subtract.Scalar", "TTVV", self, other, alpha);
}
opd_tensor *opd_subtract_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::subtract_.Scalar", "TTV", self, other);
}
opd_tensor *opd_subtract_Scalar_full_(opd_tensor *self, opd_value other, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::subtract_.Scalar", "TTVV", self, other, alpha);
}
opd_tensor *opd_multiply_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multiply.Tensor", "TTT", self, other);
}
opd_tensor *opd_multiply_Tensor_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multiply_.Tensor", "TTT", self, other);
}
opd_tensor *opd_multiply_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multiply.Scalar", "TTV", self, other);
}
opd_tensor *opd_multiply_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multiply_.Scalar", "TTV", self, other);
}
opd_tensor *opd_divide_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::divide.Tensor", "TTT", self, other);
}
opd_tensor *opd_divide_Tensor_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::divide_.Tensor", "TTT", self, other);
}
opd_tensor *opd_divide_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::divide.Scalar", "TTV", self, other);
}
opd_tensor *opd_divide_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::divide_.Scalar", "TTV", self, other);
}
opd_tensor *opd_divide_Tensor_mode(opd_tensor *self, opd_tensor *other, const char *rounding_mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::divide.Tensor_mode", "TTTs", self, other, rounding_mode);
}
opd_tensor *opd_divide_Tensor_mode_(opd_tensor *self, opd_tensor *other, const char *rounding_mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::divide_.Tensor_mode", "TTTs", self, other, rounding_mode);
}
opd_tensor *opd_divide_Scalar_mode(opd_tensor *self, opd_value other, const char *rounding_mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::divide.Scalar_mode", "TTVs", self, other, rounding_mode);
}
opd_tensor *opd_divide_Scalar_mode_(opd_tensor *self, opd_value other, const char *rounding_mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::divide_.Scalar_mode", "TTVs", self, other, rounding_mode);
}
opd_tensor *opd_greater_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::greater.Tensor", "TTT", self, other);
}
opd_tensor *opd_greater_Tensor_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::greater_.Tensor", "TTT", self, other);
}
opd_tensor *opd_greater_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::greater.Scalar", "TTV", self, other);
}
opd_tensor *opd_greater_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::greater_.Scalar", "TTV", self, other);
}
opd_tensor *opd_greater_equal_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::greater_equal.Tensor", "TTT", self, other);
}
opd_tensor *opd_greater_equal_Tensor_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::greater_equal_.Tensor", "TTT", self, other);
}
opd_tensor *opd_greater_equal_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::greater_equal.Scalar", "TTV", self, other);
}
opd_tensor *opd_greater_equal_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::greater_equal_.Scalar", "TTV", self, other);
}
opd_tensor *opd_less_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::less.Tensor", "TTT", self, other);
}
opd_tensor *opd_less_Tensor_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::less_.Tensor", "TTT", self, other);
}
opd_tensor *opd_less_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::less.Scalar", "TTV", self, other);
}
opd_tensor *opd_less_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::less_.Scalar", "TTV", self, other);
}
opd_tensor *opd_less_equal_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::less_equal.Tensor", "TTT", self, other);
}
opd_tensor *opd_less_equal_Tensor_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::less_equal_.Tensor", "TTT", self, other);
}
opd_tensor *opd_less_equal_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::less_equal.Scalar", "TTV", self, other);
}
opd_tensor *opd_less_equal_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::less_equal_.Scalar", "TTV", self, other);
}
opd_tensor *opd_not_equal_Tensor(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::not_equal.Tensor", "TTT", self, other);
}
opd_tensor *opd_not_equal_Tensor_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::not_equal_.Tensor", "TTT", self, other);
}
opd_tensor *opd_not_equal_Scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::not_equal.Scalar", "TTV", self, other);
}
opd_tensor *opd_not_equal_Scalar_(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::not_equal_.Scalar", "TTV", self, other);
}
opd_tensor *opd_float_power_Tensor_Tensor(opd_tensor *self, opd_tensor *exponent) {
    static opd_op *op;
    return opd_given_op(&op, "aten::float_power.Tensor_Tensor", "TTT", self, exponent);
}
opd_tensor *opd_float_power_Tensor_Tensor_(opd_tensor *self, opd_tensor *exponent) {
    static opd_op *op;
    return opd_given_op(&op, "aten::float_power_.Tensor", "TTT", self, exponent);
}
opd_tensor *opd_float_power_Scalar(opd_value self, opd_tensor *exponent) {
    static opd_op *op;
    return opd_given_op(&op, "aten::float_power.Scalar", "TVT", self, exponent);
}
opd_tensor *opd_float_power_Tensor_Scalar(opd_tensor *self, opd_value exponent) {
    static opd_op *op;
    return opd_given_op(&op, "aten::float_power.Tensor_Scalar", "TTV", self, exponent);
}
opd_tensor *opd_float_power_Tensor_Scalar_(opd_tensor *self, opd_value exponent) {
    static opd_op *op;
    return opd_given_op(&op, "aten::float_power_.Scalar", "TTV", self, exponent);
}
opd_tensor *opd_sum_full(opd_tensor *self, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sum", "TTV", self, dtype);
}
opd_tensor *opd_nansum(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nansum", "TT", self);
}
opd_tensor *opd_mean_full(opd_tensor *self, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::mean", "TTV", self, dtype);
}
opd_tensor *opd_prod(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::prod", "TT", self);
}
opd_tensor *opd_prod_full(opd_tensor *self, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::prod", "TTV", self, dtype);
}
opd_tensor *opd_var(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::var", "TT", self);
}
opd_tensor *opd_var_full(opd_tensor *self, bool unbiased) {
    static opd_op *op;
    return opd_given_op(&op, "aten::var", "TTb", self, unbiased);
}
opd_tensor *opd_std(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::std", "TT", self);
}
opd_tensor *opd_std_full(opd_tensor *self, bool unbiased) {
    static opd_op *op;
    return opd_given_op(&op, "aten::std", "TTb", self, unbiased);
}
int opd_var_mean(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::var_mean", "NT", rets, self);
}
int opd_var_mean_full(opd_tensor **rets, opd_tensor *self, bool unbiased) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::var_mean", "NTb", rets, self, unbiased);
}
int opd_std_mean(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::std_mean", "NT", rets, self);
}
int opd_std_mean_full(opd_tensor **rets, opd_tensor *self, bool unbiased) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::std_mean", "NTb", rets, self, unbiased);
}
opd_tensor *opd_var_dim(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::var.dim", "TTV", self, opd_value_optional_ints(dim));
}
opd_tensor *opd_var_dim_full(opd_tensor *self, opd_ints dim, bool unbiased, bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::var.dim", "TTVbb", self, opd_value_optional_ints(dim), unbiased, keepdim);
}
opd_tensor *opd_std_dim(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::std.dim", "TTV", self, opd_value_optional_ints(dim));
}
opd_tensor *opd_std_dim_full(opd_tensor *self, opd_ints dim, bool unbiased, bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::std.dim", "TTVbb", self, opd_value_optional_ints(dim), unbiased, keepdim);
}
int opd_var_mean_dim(opd_tensor **rets, opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::var_mean.dim", "NTV", rets, self, opd_value_optional_ints(dim));
}
int opd_var_mean_dim_full(opd_tensor **rets, opd_tensor *self, opd_ints dim, bool unbiased, bool keepdim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::var_mean.dim", "NTVbb", rets, self, opd_value_optional_ints(dim), unbiased,
                             keepdim);
}
int opd_std_mean_dim(opd_tensor **rets, opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::std_mean.dim", "NTV", rets, self, opd_value_optional_ints(dim));
}
int opd_std_mean_dim_full(opd_tensor **rets, opd_tensor *self, opd_ints dim, bool unbiased, bool keepdim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::std_mean.dim", "NTVbb", rets, self, opd_value_optional_ints(dim), unbiased,
                             keepdim);
}
opd_tensor *opd_var_correction(opd_tensor *self, opd_ints dim, opd_value correction, bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::var.correction", "TTVVb", self, opd_value_optional_ints(dim), correction, keepdim);
}
opd_tensor *opd_std_correction(opd_tensor *self, opd_ints dim, opd_value correction, bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::std.correction", "TTVVb", self, opd_value_optional_ints(dim), correction, keepdim);
}
int opd_var_mean_correction(opd_tensor **rets, opd_tensor *self, opd_ints dim, opd_value correction, bool keepdim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::var_mean.correction", "NTVVb", rets, self, opd_value_optional_ints(dim),
                             correction, keepdim);
}
int opd_std_mean_correction(opd_tensor **rets, opd_tensor *self, opd_ints dim, opd_value correction, bool keepdim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::std_mean.correction", "NTVVb", rets, self, opd_value_optional_ints(dim),
                             correction, keepdim);
}
int opd_min_dim(opd_tensor **rets, opd_tensor *self, int64_t dim, bool keepdim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::min.dim", "NTib", rets, self, dim, keepdim);
}
opd_tensor *opd_argmax(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::argmax", "TT", self);
}
opd_tensor *opd_argmin(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::argmin", "TT", self);
}
opd_tensor *opd_argmin_full(opd_tensor *self, opd_value dim, bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::argmin", "TTVb", self, dim, keepdim);
}
opd_tensor *opd_max_other(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max.other", "TTT", self, other);
}
opd_tensor *opd_min_other(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::min.other", "TTT", self, other);
}
int opd_aminmax_full(opd_tensor **rets, opd_tensor *self, opd_value dim, bool keepdim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::aminmax", "NTVb", rets, self, dim, keepdim);
}
opd_tensor *opd_value_selecting_reduction_backward(opd_tensor *grad, int64_t dim, opd_tensor *indices, opd_ints sizes,
                                        bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::value_selecting_reduction_backward", "TTiTIb", grad, dim, indices, sizes, keepdim);
}
opd_tensor *opd_count_nonzero_dim(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::count_nonzero.dim_IntList", "TTI", self, dim);
}
opd_tensor *opd_count_nonzero(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::count_nonzero", "TT", self);
}
opd_tensor *opd_count_nonzero_full(opd_tensor *self, opd_value dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::count_nonzero", "TTV", self, dim);
}
opd_tensor *opd_linalg_vector_norm(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_vector_norm", "TT", self);
}
opd_tensor *opd_linalg__powsum(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg__powsum", "TT", self);
}
opd_tensor *opd_linalg__powsum_full(opd_tensor *self, opd_value ord, opd_ints dim, bool keepdim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg__powsum", "TTVVbV", self, ord, opd_value_optional_ints(dim), keepdim, dtype);
}
opd_tensor *opd_renorm(opd_tensor *self, opd_value p, int64_t dim, opd_value maxnorm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::renorm", "TTViV", self, p, dim, maxnorm);
}
opd_tensor *opd_renorm_(opd_tensor *self, opd_value p, int64_t dim, opd_value maxnorm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::renorm_", "TTViV", self, p, dim, maxnorm);
}
opd_tensor *opd_norm_dtype(opd_tensor *self, opd_value p, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::norm.ScalarOpt_dtype", "TTVi", self, p, OPD_CAST(int64_t, dtype));
}
opd_tensor *opd_frobenius_norm(opd_tensor *self, opd_ints dim, bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::frobenius_norm.dim", "TTIb", self, dim, keepdim);
}
opd_tensor *opd_dist(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::dist", "TTT", self, other);
}
opd_tensor *opd_dist_full(opd_tensor *self, opd_tensor *other, opd_value p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::dist", "TTTV", self, other, p);
}
opd_tensor *opd_logsumexp(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logsumexp", "TTI", self, dim);
}
opd_tensor *opd_special_logsumexp(opd_tensor *self, opd_ints dim, bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_logsumexp", "TTIb", self, dim, keepdim);
}
opd_tensor *opd_sum_to_size(opd_tensor *self, opd_ints size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::sum_to_size", "TTI", self, size);
}
opd_tensor *opd_nanmean(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nanmean", "TT", self);
}
opd_tensor *opd_nanmean_full(opd_tensor *self, opd_value dim, bool keepdim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nanmean", "TTVbV", self, dim, keepdim, dtype);
}
opd_tensor *opd_isclose(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isclose", "TTT", self, other);
}
opd_value opd_allclose(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_value(&op, "aten::allclose", "VTT", self, other);
}
opd_value opd_allclose_full(opd_tensor *self, opd_tensor *other, double rtol, double atol, bool equal_nan) {
    static opd_op *op;
    return opd_given_value(&op, "aten::allclose", "VTTddb", self, other, rtol, atol, equal_nan);
}
opd_tensor *opd_log_softmax_full(opd_tensor *self, int64_t dim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::log_softmax.int", "TTiV", self, dim, dtype);
}
opd_tensor *opd_special_softmax(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_softmax", "TTi", self, dim);
}
opd_tensor *opd_special_softmax_full(opd_tensor *self, int64_t dim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_softmax", "TTiV", self, dim, dtype);
}
opd_tensor *opd_special_log_softmax(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_log_softmax", "TTi", self, dim);
}
opd_tensor *opd_special_log_softmax_full(opd_tensor *self, int64_t dim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_log_softmax", "TTiV", self, dim, dtype);
}
opd_tensor *opd_diff_full(opd_tensor *self, int64_t n, int64_t dim, opd_tensor *prepend, opd_tensor *append) {
    static opd_op *op;
    return opd_given_op(&op, "aten::diff", "TTiiTT", self, n, dim, prepend, append);
}
opd_tensor *opd_cumsum_(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cumsum_", "TTi", self, dim);
}
opd_tensor *opd_cumsum_full_(opd_tensor *self, int64_t dim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cumsum_", "TTiV", self, dim, dtype);
}
opd_tensor *opd_cumprod_full(opd_tensor *self, int64_t dim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cumprod", "TTiV", self, dim, dtype);
}
opd_tensor *opd_cumprod_(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cumprod_", "TTi", self, dim);
}
opd_tensor *opd_cumprod_full_(opd_tensor *self, int64_t dim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cumprod_", "TTiV", self, dim, dtype);
}
opd_tensor *opd_cumprod_backward(opd_tensor *grad, opd_tensor *input, int64_t dim, opd_tensor *output) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cumprod_backward", "TTTiT", grad, input, dim, output);
}
int opd_cummax(opd_tensor **rets, opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::cummax", "NTi", rets, self, dim);
}
int opd_cummin(opd_tensor **rets, opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::cummin", "NTi", rets, self, dim);
}
int opd_sort(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::sort", "NT", rets, self);
}
int opd_topk(opd_tensor **rets, opd_tensor *self, int64_t k) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::topk", "NTi", rets, self, k);
}
int opd_kthvalue(opd_tensor **rets, opd_tensor *self, int64_t k) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::kthvalue", "NTi", rets, self, k);
}
int opd_kthvalue_full(opd_tensor **rets, opd_tensor *self, int64_t k, int64_t dim, bool keepdim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::kthvalue", "NTiib", rets, self, k, dim, keepdim);
}
int opd_mode(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::mode", "NT", rets, self);
}
int opd_mode_full(opd_tensor **rets, opd_tensor *self, int64_t dim, bool keepdim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::mode", "NTib", rets, self, dim, keepdim);
}
opd_tensor *opd_median(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::median", "TT", self);
}
opd_tensor *opd_nanmedian(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nanmedian", "TT", self);
}
opd_tensor *opd_argsort(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::argsort", "TT", self);
}
opd_tensor *opd_argsort_full(opd_tensor *self, int64_t dim, bool descending) {
    static opd_op *op;
    return opd_given_op(&op, "aten::argsort", "TTib", self, dim, descending);
}
opd_tensor *opd_argsort_stable(opd_tensor *self, bool stable, int64_t dim, bool descending) {
    static opd_op *op;
    return opd_given_op(&op, "aten::argsort.stable", "TTbib", self, stable, dim, descending);
}
opd_tensor *opd_msort(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::msort", "TT", self);
}
opd_tensor *opd_trapezoid_x(opd_tensor *y, opd_tensor *x) {
    static opd_op *op;
    return opd_given_op(&op, "aten::trapezoid.x", "TTT", y, x);
}
opd_tensor *opd_trapezoid_x_full(opd_tensor *y, opd_tensor *x, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::trapezoid.x", "TTTi", y, x, dim);
}
opd_tensor *opd_trapezoid_dx(opd_tensor *y) {
    static opd_op *op;
    return opd_given_op(&op, "aten::trapezoid.dx", "TT", y);
}
opd_tensor *opd_trapezoid_dx_full(opd_tensor *y, opd_value dx, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::trapezoid.dx", "TTVi", y, dx, dim);
}
opd_tensor *opd_trapz_x(opd_tensor *y, opd_tensor *x) {
    static opd_op *op;
    return opd_given_op(&op, "aten::trapz.x", "TTT", y, x);
}
opd_tensor *opd_trapz_x_full(opd_tensor *y, opd_tensor *x, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::trapz.x", "TTTi", y, x, dim);
}
opd_tensor *opd_trapz_dx(opd_tensor *y) {
    static opd_op *op;
    return opd_given_op(&op, "aten::trapz.dx", "TT", y);
}
opd_tensor *opd_trapz_dx_full(opd_tensor *y, double dx, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::trapz.dx", "TTdi", y, dx, dim);
}
opd_tensor *opd_cumulative_trapezoid_x(opd_tensor *y, opd_tensor *x) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cumulative_trapezoid.x", "TTT", y, x);
}
opd_tensor *opd_cumulative_trapezoid_x_full(opd_tensor *y, opd_tensor *x, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cumulative_trapezoid.x", "TTTi", y, x, dim);
}
opd_tensor *opd_cumulative_trapezoid_dx(opd_tensor *y) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cumulative_trapezoid.dx", "TT", y);
}
opd_tensor *opd_cumulative_trapezoid_dx_full(opd_tensor *y, opd_value dx, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cumulative_trapezoid.dx", "TTVi", y, dx, dim);
}
opd_tensors opd_gradient_scalarint(opd_tensor *self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.scalarint", "LT", self);
}
opd_tensors opd_gradient_scalarint_full(opd_tensor *self, opd_value spacing, opd_value dim, int64_t edge_order) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.scalarint", "LTVVi", self, spacing, dim, edge_order);
}
opd_tensors opd_gradient_scalararray(opd_tensor *self, opd_value spacing, opd_ints dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.scalararray", "LTVI", self, spacing, dim);
}
opd_tensors opd_gradient_scalararray_full(opd_tensor *self, opd_value spacing, opd_ints dim, int64_t edge_order) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.scalararray", "LTVIi", self, spacing, dim, edge_order);
}
opd_tensors opd_gradient_array(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.array", "LTI", self, dim);
}
opd_tensors opd_gradient_array_full(opd_tensor *self, opd_ints dim, int64_t edge_order) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.array", "LTIi", self, dim, edge_order);
}
opd_tensors opd_gradient_scalarrayint(opd_tensor *self, opd_value spacing) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.scalarrayint", "LTV", self, spacing);
}
opd_tensors opd_gradient_scalarrayint_full(opd_tensor *self, opd_value spacing, opd_value dim, int64_t edge_order) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.scalarrayint", "LTVVi", self, spacing, dim, edge_order);
}
opd_tensors opd_gradient_scalarrayarray(opd_tensor *self, opd_value spacing, opd_ints dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.scalarrayarray", "LTVI", self, spacing, dim);
}
opd_tensors opd_gradient_scalarrayarray_full(opd_tensor *self, opd_value spacing, opd_ints dim, int64_t edge_order) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.scalarrayarray", "LTVIi", self, spacing, dim, edge_order);
}
opd_tensors opd_gradient_tensorarrayint(opd_tensor *self, opd_tensors spacing) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.tensorarrayint", "LTL", self, spacing);
}
opd_tensors opd_gradient_tensorarrayint_full(opd_tensor *self, opd_tensors spacing, opd_value dim, int64_t edge_order) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.tensorarrayint", "LTLVi", self, spacing, dim, edge_order);
}
opd_tensors opd_gradient_tensorarray(opd_tensor *self, opd_tensors spacing, opd_ints dim) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.tensorarray", "LTLI", self, spacing, dim);
}
opd_tensors opd_gradient_tensorarray_full(opd_tensor *self, opd_tensors spacing, opd_ints dim, int64_t edge_order) {
    static opd_op *op;
    return opd_given_list(&op, "aten::gradient.tensorarray", "LTLIi", self, spacing, dim, edge_order);
}
opd_tensor *opd_quantile(opd_tensor *self, opd_tensor *q) {
    static opd_op *op;
    return opd_given_op(&op, "aten::quantile", "TTT", self, q);
}
opd_tensor *opd_quantile_full(opd_tensor *self, opd_tensor *q, opd_value dim, bool keepdim, const char *interpolation) {
    static opd_op *op;
    return opd_given_op(&op, "aten::quantile", "TTTVbs", self, q, dim, keepdim, interpolation);
}
opd_tensor *opd_quantile_scalar(opd_tensor *self, double q) {
    static opd_op *op;
    return opd_given_op(&op, "aten::quantile.scalar", "TTd", self, q);
}
opd_tensor *opd_quantile_scalar_full(opd_tensor *self, double q, opd_value dim, bool keepdim,
                                     const char *interpolation) {
    static opd_op *op;
    return opd_given_op(&op, "aten::quantile.scalar", "TTdVbs", self, q, dim, keepdim, interpolation);
}
opd_tensor *opd_nanquantile(opd_tensor *self, opd_tensor *q) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nanquantile", "TTT", self, q);
}
opd_tensor *opd_nanquantile_full(opd_tensor *self, opd_tensor *q, opd_value dim, bool keepdim,
                                 const char *interpolation) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nanquantile", "TTTVbs", self, q, dim, keepdim, interpolation);
}
opd_tensor *opd_nanquantile_scalar(opd_tensor *self, double q) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nanquantile.scalar", "TTd", self, q);
}
opd_tensor *opd_nanquantile_scalar_full(opd_tensor *self, double q, opd_value dim, bool keepdim,
                                        const char *interpolation) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nanquantile.scalar", "TTdVbs", self, q, dim, keepdim, interpolation);
}
opd_tensor *opd_cov(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cov", "TT", self);
}
opd_tensor *opd_cov_full(opd_tensor *self, int64_t correction, opd_tensor *fweights, opd_tensor *aweights) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cov", "TTiTT", self, correction, fweights, aweights);
}
opd_tensor *opd_corrcoef(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::corrcoef", "TT", self);
}
opd_tensor *opd_mm_dtype(opd_tensor *self, opd_tensor *mat2, opd_scalar_type out_dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::mm.dtype", "TTTi", self, mat2, OPD_CAST(int64_t, out_dtype));
}
opd_tensor *opd_bmm_dtype(opd_tensor *self, opd_tensor *mat2, opd_scalar_type out_dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bmm.dtype", "TTTi", self, mat2, OPD_CAST(int64_t, out_dtype));
}
opd_tensor *opd_addmm_(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addmm_", "TTTT", self, mat1, mat2);
}
opd_tensor *opd_addmm_full_(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2, opd_value beta, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addmm_", "TTTTVV", self, mat1, mat2, beta, alpha);
}
opd_tensor *opd_addmm_dtype(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2, opd_scalar_type out_dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addmm.dtype", "TTTTi", self, mat1, mat2, OPD_CAST(int64_t, out_dtype));
}
opd_tensor *opd_addmm_dtype_full(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2, opd_scalar_type out_dtype,
                                 opd_value beta, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addmm.dtype", "TTTTiVV", self, mat1, mat2, OPD_CAST(int64_t, out_dtype), beta,
                        alpha);
}
opd_tensor *opd__addmm_activation(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_addmm_activation", "TTTT", self, mat1, mat2);
}
opd_tensor *opd__addmm_activation_full(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2, opd_value beta,
                                       opd_value alpha, bool use_gelu) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_addmm_activation", "TTTTVVb", self, mat1, mat2, beta, alpha, use_gelu);
}
opd_tensor *opd__int_mm(opd_tensor *self, opd_tensor *mat2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_int_mm", "TTT", self, mat2);
}
opd_tensor *opd_baddbmm(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::baddbmm", "TTTT", self, batch1, batch2);
}
opd_tensor *opd_baddbmm_(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::baddbmm_", "TTTT", self, batch1, batch2);
}
opd_tensor *opd_baddbmm_full_(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2, opd_value beta,
                              opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::baddbmm_", "TTTTVV", self, batch1, batch2, beta, alpha);
}
opd_tensor *opd_baddbmm_dtype(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2, opd_scalar_type out_dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::baddbmm.dtype", "TTTTi", self, batch1, batch2, OPD_CAST(int64_t, out_dtype));
}
opd_tensor *opd_baddbmm_dtype_full(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2, opd_scalar_type out_dtype,
                                   opd_value beta, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::baddbmm.dtype", "TTTTiVV", self, batch1, batch2, OPD_CAST(int64_t, out_dtype), beta,
                        alpha);
}
opd_tensor *opd_addbmm(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addbmm", "TTTT", self, batch1, batch2);
}
opd_tensor *opd_addbmm_full(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2, opd_value beta, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addbmm", "TTTTVV", self, batch1, batch2, beta, alpha);
}
opd_tensor *opd_addbmm_(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addbmm_", "TTTT", self, batch1, batch2);
}
opd_tensor *opd_addbmm_full_(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2, opd_value beta,
                             opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addbmm_", "TTTTVV", self, batch1, batch2, beta, alpha);
}
opd_tensor *opd_addmv(opd_tensor *self, opd_tensor *mat, opd_tensor *vec) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addmv", "TTTT", self, mat, vec);
}
opd_tensor *opd_addmv_full(opd_tensor *self, opd_tensor *mat, opd_tensor *vec, opd_value beta, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addmv", "TTTTVV", self, mat, vec, beta, alpha);
}
opd_tensor *opd_addmv_(opd_tensor *self, opd_tensor *mat, opd_tensor *vec) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addmv_", "TTTT", self, mat, vec);
}
opd_tensor *opd_addmv_full_(opd_tensor *self, opd_tensor *mat, opd_tensor *vec, opd_value beta, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addmv_", "TTTTVV", self, mat, vec, beta, alpha);
}
opd_tensor *opd_ger(opd_tensor *self, opd_tensor *vec2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ger", "TTT", self, vec2);
}
opd_tensor *opd_addr(opd_tensor *self, opd_tensor *vec1, opd_tensor *vec2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addr", "TTTT", self, vec1, vec2);
}
opd_tensor *opd_addr_full(opd_tensor *self, opd_tensor *vec1, opd_tensor *vec2, opd_value beta, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addr", "TTTTVV", self, vec1, vec2, beta, alpha);
}
opd_tensor *opd_addr_(opd_tensor *self, opd_tensor *vec1, opd_tensor *vec2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addr_", "TTTT", self, vec1, vec2);
}
opd_tensor *opd_addr_full_(opd_tensor *self, opd_tensor *vec1, opd_tensor *vec2, opd_value beta, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::addr_", "TTTTVV", self, vec1, vec2, beta, alpha);
}
opd_tensor *opd_einsum_full(const char *equation, opd_tensors tensors, opd_ints path) {
    static opd_op *op;
    return opd_given_op(&op, "aten::einsum", "TsLV", equation, tensors, opd_value_optional_ints(path));
}
opd_tensor *opd_tensordot(opd_tensor *self, opd_tensor *other, opd_ints dims_self, opd_ints dims_other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::tensordot", "TTTII", self, other, dims_self, dims_other);
}
opd_tensor *opd_inner(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::inner", "TTT", self, other);
}
opd_tensor *opd_kron(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::kron", "TTT", self, other);
}
opd_tensor *opd_norm_except_dim(opd_tensor *v) {
    static opd_op *op;
    return opd_given_op(&op, "aten::norm_except_dim", "TT", v);
}
opd_tensor *opd_norm_except_dim_full(opd_tensor *v, int64_t pow, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::norm_except_dim", "TTii", v, pow, dim);
}
opd_tensor *opd__trilinear_full(opd_tensor *i1, opd_tensor *i2, opd_tensor *i3, opd_ints expand1, opd_ints expand2,
                                opd_ints expand3, opd_ints sumdim, int64_t unroll_dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_trilinear", "TTTTIIIIi", i1, i2, i3, expand1, expand2, expand3, sumdim,
                        unroll_dim);
}
opd_tensor *opd_bilinear(opd_tensor *input1, opd_tensor *input2, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bilinear", "TTTT", input1, input2, weight);
}
opd_tensor *opd_bilinear_full(opd_tensor *input1, opd_tensor *input2, opd_tensor *weight, opd_tensor *bias) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bilinear", "TTTTT", input1, input2, weight, bias);
}
opd_tensor *opd_under_convolution(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                  opd_ints padding, opd_ints dilation, bool transposed, opd_ints output_padding,
                                  int64_t groups, bool benchmark, bool deterministic, bool cudnn_enabled,
                                  bool allow_tf32) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_convolution", "TTTTIIIbIibbbb", input, weight, bias, stride, padding, dilation,
                        transposed, output_padding, groups, benchmark, deterministic, cudnn_enabled, allow_tf32);
}
opd_tensor *opd_under_convolution_deprecated(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                        opd_ints padding, opd_ints dilation, bool transposed, opd_ints output_padding,
                                        int64_t groups, bool benchmark, bool deterministic, bool cudnn_enabled) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_convolution.deprecated", "TTTTIIIbIibbb", input, weight, bias, stride, padding,
                        dilation, transposed, output_padding, groups, benchmark, deterministic, cudnn_enabled);
}
opd_tensor *opd_conv1d(opd_tensor *input, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv1d", "TTT", input, weight);
}
opd_tensor *opd_conv1d_padding(opd_tensor *input, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv1d.padding", "TTT", input, weight);
}
opd_tensor *opd_conv1d_padding_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                    const char *padding, opd_ints dilation, int64_t groups) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv1d.padding", "TTTTIsIi", input, weight, bias, stride, padding, dilation,
                        groups);
}
opd_tensor *opd_conv2d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride, opd_ints padding,
                            opd_ints dilation, int64_t groups) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv2d", "TTTTIIIi", input, weight, bias, stride, padding, dilation, groups);
}
opd_tensor *opd_conv2d_padding(opd_tensor *input, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv2d.padding", "TTT", input, weight);
}
opd_tensor *opd_conv2d_padding_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                    const char *padding, opd_ints dilation, int64_t groups) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv2d.padding", "TTTTIsIi", input, weight, bias, stride, padding, dilation,
                        groups);
}
opd_tensor *opd_conv3d(opd_tensor *input, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv3d", "TTT", input, weight);
}
opd_tensor *opd_conv3d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride, opd_ints padding,
                            opd_ints dilation, int64_t groups) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv3d", "TTTTIIIi", input, weight, bias, stride, padding, dilation, groups);
}
opd_tensor *opd_conv3d_padding(opd_tensor *input, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv3d.padding", "TTT", input, weight);
}
opd_tensor *opd_conv3d_padding_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                    const char *padding, opd_ints dilation, int64_t groups) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv3d.padding", "TTTTIsIi", input, weight, bias, stride, padding, dilation,
                        groups);
}
opd_tensor *opd_conv_tbc(opd_tensor *self, opd_tensor *weight, opd_tensor *bias) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv_tbc", "TTTT", self, weight, bias);
}
opd_tensor *opd_conv_tbc_full(opd_tensor *self, opd_tensor *weight, opd_tensor *bias, int64_t pad) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv_tbc", "TTTTi", self, weight, bias, pad);
}
opd_tensor *opd_thnn_conv2d(opd_tensor *self, opd_tensor *weight, opd_ints kernel_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::thnn_conv2d", "TTTI", self, weight, kernel_size);
}
opd_tensor *opd_thnn_conv2d_full(opd_tensor *self, opd_tensor *weight, opd_ints kernel_size, opd_tensor *bias,
                                 opd_ints stride, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::thnn_conv2d", "TTTITII", self, weight, kernel_size, bias, stride, padding);
}
opd_tensor *opd__convolution_mode(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                  const char *padding, opd_ints dilation, int64_t groups) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_convolution_mode", "TTTTIsIi", input, weight, bias, stride, padding, dilation,
                        groups);
}
opd_tensor *opd_conv_transpose1d(opd_tensor *input, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv_transpose1d", "TTT", input, weight);
}
opd_tensor *opd_conv_transpose1d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                      opd_ints padding, opd_ints output_padding, int64_t groups, opd_ints dilation) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv_transpose1d", "TTTTIIIiI", input, weight, bias, stride, padding,
                        output_padding, groups, dilation);
}
opd_tensor *opd_conv_transpose2d(opd_tensor *input, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv_transpose2d.input", "TTT", input, weight);
}
opd_tensor *opd_conv_transpose2d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                      opd_ints padding, opd_ints output_padding, int64_t groups, opd_ints dilation) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv_transpose2d.input", "TTTTIIIiI", input, weight, bias, stride, padding,
                        output_padding, groups, dilation);
}
opd_tensor *opd_conv_transpose3d(opd_tensor *input, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv_transpose3d.input", "TTT", input, weight);
}
opd_tensor *opd_conv_transpose3d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                      opd_ints padding, opd_ints output_padding, int64_t groups, opd_ints dilation) {
    static opd_op *op;
    return opd_given_op(&op, "aten::conv_transpose3d.input", "TTTTIIIiI", input, weight, bias, stride, padding,
                        output_padding, groups, dilation);
}
int opd_max_pool2d_with_indices(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::max_pool2d_with_indices", "NTI", rets, self, kernel_size);
}
opd_tensor *opd_max_pool2d_with_indices_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints kernel_size,
                                        opd_ints stride, opd_ints padding, opd_ints dilation, bool ceil_mode,
                                        opd_tensor *indices) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max_pool2d_with_indices_backward", "TTTIIIIbT", grad_output, self, kernel_size,
                        stride, padding, dilation, ceil_mode, indices);
}
int opd_max_pool3d_with_indices(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::max_pool3d_with_indices", "NTI", rets, self, kernel_size);
}
int opd_max_pool3d_with_indices_full(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size, opd_ints stride,
                                     opd_ints padding, opd_ints dilation, bool ceil_mode) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::max_pool3d_with_indices", "NTIIIIb", rets, self, kernel_size, stride, padding,
                             dilation, ceil_mode);
}
opd_tensor *opd_max_pool3d_with_indices_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints kernel_size,
                                        opd_ints stride, opd_ints padding, opd_ints dilation, bool ceil_mode,
                                        opd_tensor *indices) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max_pool3d_with_indices_backward", "TTTIIIIbT", grad_output, self, kernel_size,
                        stride, padding, dilation, ceil_mode, indices);
}
opd_tensor *opd_max_pool2d(opd_tensor *self, opd_ints kernel_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max_pool2d", "TTI", self, kernel_size);
}
opd_tensor *opd_max_pool2d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                opd_ints dilation, bool ceil_mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max_pool2d", "TTIIIIb", self, kernel_size, stride, padding, dilation, ceil_mode);
}
opd_tensor *opd_max_pool3d(opd_tensor *self, opd_ints kernel_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max_pool3d", "TTI", self, kernel_size);
}
opd_tensor *opd_max_pool3d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                opd_ints dilation, bool ceil_mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max_pool3d", "TTIIIIb", self, kernel_size, stride, padding, dilation, ceil_mode);
}
int opd_max_pool1d_with_indices(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::max_pool1d_with_indices", "NTI", rets, self, kernel_size);
}
opd_tensor *opd_max_pool1d(opd_tensor *self, opd_ints kernel_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max_pool1d", "TTI", self, kernel_size);
}
opd_tensor *opd_max_pool1d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                opd_ints dilation, bool ceil_mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max_pool1d", "TTIIIIb", self, kernel_size, stride, padding, dilation, ceil_mode);
}
opd_tensor *opd_avg_pool2d(opd_tensor *self, opd_ints kernel_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::avg_pool2d", "TTI", self, kernel_size);
}
opd_tensor *opd_avg_pool2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints kernel_size, opd_ints stride,
                                    opd_ints padding, bool ceil_mode, bool count_include_pad,
                                    opd_value divisor_override) {
    static opd_op *op;
    return opd_given_op(&op, "aten::avg_pool2d_backward", "TTTIIIbbV", grad_output, self, kernel_size, stride, padding,
                        ceil_mode, count_include_pad, divisor_override);
}
opd_tensor *opd_avg_pool3d(opd_tensor *self, opd_ints kernel_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::avg_pool3d", "TTI", self, kernel_size);
}
opd_tensor *opd_avg_pool3d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                bool ceil_mode, bool count_include_pad, opd_value divisor_override) {
    static opd_op *op;
    return opd_given_op(&op, "aten::avg_pool3d", "TTIIIbbV", self, kernel_size, stride, padding, ceil_mode,
                        count_include_pad, divisor_override);
}
opd_tensor *opd_avg_pool3d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints kernel_size, opd_ints stride,
                                    opd_ints padding, bool ceil_mode, bool count_include_pad,
                                    opd_value divisor_override) {
    static opd_op *op;
    return opd_given_op(&op, "aten::avg_pool3d_backward", "TTTIIIbbV", grad_output, self, kernel_size, stride, padding,
                        ceil_mode, count_include_pad, divisor_override);
}
opd_tensor *opd_avg_pool1d(opd_tensor *self, opd_ints kernel_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::avg_pool1d", "TTI", self, kernel_size);
}
opd_tensor *opd_avg_pool1d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                bool ceil_mode, bool count_include_pad) {
    static opd_op *op;
    return opd_given_op(&op, "aten::avg_pool1d", "TTIIIbb", self, kernel_size, stride, padding, ceil_mode,
                        count_include_pad);
}
opd_tensor *opd_adaptive_avg_pool2d_backward(opd_tensor *grad_output, opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_adaptive_avg_pool2d_backward", "TTT", grad_output, self);
}
opd_tensor *opd_adaptive_avg_pool3d_backward(opd_tensor *grad_output, opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_adaptive_avg_pool3d_backward", "TTT", grad_output, self);
}
opd_tensor *opd_adaptive_max_pool2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *indices) {
    static opd_op *op;
    return opd_given_op(&op, "aten::adaptive_max_pool2d_backward", "TTTT", grad_output, self, indices);
}
int opd_adaptive_max_pool3d(opd_tensor **rets, opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::adaptive_max_pool3d", "NTI", rets, self, output_size);
}
opd_tensor *opd_adaptive_max_pool3d_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *indices) {
    static opd_op *op;
    return opd_given_op(&op, "aten::adaptive_max_pool3d_backward", "TTTT", grad_output, self, indices);
}
opd_tensor *opd_adaptive_avg_pool1d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::adaptive_avg_pool1d", "TTI", self, output_size);
}
opd_tensor *opd_adaptive_avg_pool3d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::adaptive_avg_pool3d", "TTI", self, output_size);
}
int opd_adaptive_max_pool1d(opd_tensor **rets, opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::adaptive_max_pool1d", "NTI", rets, self, output_size);
}
opd_tensor *opd_max_unpool2d(opd_tensor *self, opd_tensor *indices, opd_ints output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max_unpool2d", "TTTI", self, indices, output_size);
}
opd_tensor *opd_max_unpool3d(opd_tensor *self, opd_tensor *indices, opd_ints output_size, opd_ints stride,
                             opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::max_unpool3d", "TTTIII", self, indices, output_size, stride, padding);
}
int opd_fractional_max_pool2d(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size, opd_ints output_size,
                              opd_tensor *random_samples) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::fractional_max_pool2d", "NTIIT", rets, self, kernel_size, output_size,
                             random_samples);
}
opd_tensor *opd_fractional_max_pool2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints kernel_size,
                                        opd_ints output_size, opd_tensor *indices) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fractional_max_pool2d_backward", "TTTIIT", grad_output, self, kernel_size,
                        output_size, indices);
}
int opd_fractional_max_pool3d(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size, opd_ints output_size,
                              opd_tensor *random_samples) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::fractional_max_pool3d", "NTIIT", rets, self, kernel_size, output_size,
                             random_samples);
}
opd_tensor *opd_fractional_max_pool3d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints kernel_size,
                                        opd_ints output_size, opd_tensor *indices) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fractional_max_pool3d_backward", "TTTIIT", grad_output, self, kernel_size,
                        output_size, indices);
}
opd_tensor *opd_pixel_shuffle(opd_tensor *self, int64_t upscale_factor) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pixel_shuffle", "TTi", self, upscale_factor);
}
opd_tensor *opd_pixel_unshuffle(opd_tensor *self, int64_t downscale_factor) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pixel_unshuffle", "TTi", self, downscale_factor);
}
opd_tensor *opd_upsample_nearest2d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest2d", "TTI", self, output_size);
}
opd_tensor *opd_upsample_nearest2d_full(opd_tensor *self, opd_ints output_size, opd_value scales_h,
                                        opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest2d", "TTIVV", self, output_size, scales_h, scales_w);
}
opd_tensor *opd_upsample_nearest2d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest2d_backward", "TTII", grad_output, output_size, input_size);
}
opd_tensor *opd_upsample_nearest2d_backward_full(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        opd_value scales_h, opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest2d_backward", "TTIIVV", grad_output, output_size, input_size,
                        scales_h, scales_w);
}
opd_tensor *opd_upsample_nearest2d_vec(opd_tensor *input, opd_value output_size, opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest2d.vec", "TTVV", input, output_size, scale_factors);
}
opd_tensor *opd_upsample_nearest2d_backward_vec(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest2d_backward.vec", "TTVIV", grad_output,
                        opd_value_optional_ints(output_size), input_size, scale_factors);
}
opd_tensor *opd_upsample_bilinear2d(opd_tensor *self, opd_ints output_size, bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bilinear2d", "TTIb", self, output_size, align_corners);
}
opd_tensor *opd_upsample_bilinear2d_full(opd_tensor *self, opd_ints output_size, bool align_corners, opd_value scales_h,
                                        opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bilinear2d", "TTIbVV", self, output_size, align_corners, scales_h,
                        scales_w);
}
opd_tensor *opd_upsample_bilinear2d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bilinear2d_backward", "TTIIb", grad_output, output_size, input_size,
                        align_corners);
}
opd_tensor *opd_upsample_bilinear2d_backward_full(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners, opd_value scales_h, opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bilinear2d_backward", "TTIIbVV", grad_output, output_size, input_size,
                        align_corners, scales_h, scales_w);
}
opd_tensor *opd_upsample_bilinear2d_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                        opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bilinear2d.vec", "TTVbV", input, output_size, align_corners,
                        scale_factors);
}
opd_tensor *opd_upsample_bilinear2d_backward_vec(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners, opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bilinear2d_backward.vec", "TTVIbV", grad_output,
                        opd_value_optional_ints(output_size), input_size, align_corners, scale_factors);
}
opd_tensor *opd_upsample_nearest1d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest1d", "TTI", self, output_size);
}
opd_tensor *opd_upsample_nearest1d_full(opd_tensor *self, opd_ints output_size, opd_value scales) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest1d", "TTIV", self, output_size, scales);
}
opd_tensor *opd_upsample_nearest1d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest1d_backward", "TTII", grad_output, output_size, input_size);
}
opd_tensor *opd_upsample_nearest1d_backward_full(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        opd_value scales) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest1d_backward", "TTIIV", grad_output, output_size, input_size,
                        scales);
}
opd_tensor *opd_upsample_nearest1d_vec(opd_tensor *input, opd_value output_size, opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest1d.vec", "TTVV", input, output_size, scale_factors);
}
opd_tensor *opd_upsample_nearest1d_backward_vec(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest1d_backward.vec", "TTVIV", grad_output,
                        opd_value_optional_ints(output_size), input_size, scale_factors);
}
opd_tensor *opd_upsample_nearest3d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest3d", "TTI", self, output_size);
}
opd_tensor *opd_upsample_nearest3d_full(opd_tensor *self, opd_ints output_size, opd_value scales_d, opd_value scales_h,
                                        opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest3d", "TTIVVV", self, output_size, scales_d, scales_h, scales_w);
}
opd_tensor *opd_upsample_nearest3d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest3d_backward", "TTII", grad_output, output_size, input_size);
}
opd_tensor *opd_upsample_nearest3d_backward_full(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        opd_value scales_d, opd_value scales_h, opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest3d_backward", "TTIIVVV", grad_output, output_size, input_size,
                        scales_d, scales_h, scales_w);
}
opd_tensor *opd_upsample_nearest3d_vec(opd_tensor *input, opd_value output_size, opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest3d.vec", "TTVV", input, output_size, scale_factors);
}
opd_tensor *opd_upsample_nearest3d_backward_vec(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_nearest3d_backward.vec", "TTVIV", grad_output,
                        opd_value_optional_ints(output_size), input_size, scale_factors);
}
opd_tensor *opd__upsample_nearest_exact1d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact1d", "TTI", self, output_size);
}
opd_tensor *opd__upsample_nearest_exact1d_full(opd_tensor *self, opd_ints output_size, opd_value scales) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact1d", "TTIV", self, output_size, scales);
}
opd_tensor *opd__upsample_nearest_exact1d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact1d_backward", "TTII", grad_output, output_size, input_size);
}
opd_tensor *opd__upsample_nearest_exact1d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scales) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact1d_backward", "TTIIV", grad_output, output_size, input_size,
                        scales);
}
opd_tensor *opd__upsample_nearest_exact1d_vec(opd_tensor *input, opd_value output_size, opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact1d.vec", "TTVV", input, output_size, scale_factors);
}
opd_tensor *opd__upsample_nearest_exact2d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact2d", "TTI", self, output_size);
}
opd_tensor *opd__upsample_nearest_exact2d_full(opd_tensor *self, opd_ints output_size, opd_value scales_h,
                                        opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact2d", "TTIVV", self, output_size, scales_h, scales_w);
}
opd_tensor *opd__upsample_nearest_exact2d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact2d_backward", "TTII", grad_output, output_size, input_size);
}
opd_tensor *opd__upsample_nearest_exact2d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scales_h, opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact2d_backward", "TTIIVV", grad_output, output_size, input_size,
                        scales_h, scales_w);
}
opd_tensor *opd__upsample_nearest_exact2d_vec(opd_tensor *input, opd_value output_size, opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact2d.vec", "TTVV", input, output_size, scale_factors);
}
opd_tensor *opd__upsample_nearest_exact3d(opd_tensor *self, opd_ints output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact3d", "TTI", self, output_size);
}
opd_tensor *opd__upsample_nearest_exact3d_full(opd_tensor *self, opd_ints output_size, opd_value scales_d,
                                        opd_value scales_h, opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact3d", "TTIVVV", self, output_size, scales_d, scales_h,
                        scales_w);
}
opd_tensor *opd__upsample_nearest_exact3d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact3d_backward", "TTII", grad_output, output_size, input_size);
}
opd_tensor *opd__upsample_nearest_exact3d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scales_d, opd_value scales_h,
                                        opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact3d_backward", "TTIIVVV", grad_output, output_size,
                        input_size, scales_d, scales_h, scales_w);
}
opd_tensor *opd__upsample_nearest_exact3d_vec(opd_tensor *input, opd_value output_size, opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_nearest_exact3d.vec", "TTVV", input, output_size, scale_factors);
}
opd_tensor *opd_upsample_linear1d(opd_tensor *self, opd_ints output_size, bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_linear1d", "TTIb", self, output_size, align_corners);
}
opd_tensor *opd_upsample_linear1d_full(opd_tensor *self, opd_ints output_size, bool align_corners, opd_value scales) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_linear1d", "TTIbV", self, output_size, align_corners, scales);
}
opd_tensor *opd_upsample_linear1d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_linear1d_backward", "TTIIb", grad_output, output_size, input_size,
                        align_corners);
}
opd_tensor *opd_upsample_linear1d_backward_full(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners, opd_value scales) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_linear1d_backward", "TTIIbV", grad_output, output_size, input_size,
                        align_corners, scales);
}
opd_tensor *opd_upsample_linear1d_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                      opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_linear1d.vec", "TTVbV", input, output_size, align_corners, scale_factors);
}
opd_tensor *opd_upsample_linear1d_backward_vec(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners, opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_linear1d_backward.vec", "TTVIbV", grad_output,
                        opd_value_optional_ints(output_size), input_size, align_corners, scale_factors);
}
opd_tensor *opd_upsample_trilinear3d(opd_tensor *self, opd_ints output_size, bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_trilinear3d", "TTIb", self, output_size, align_corners);
}
opd_tensor *opd_upsample_trilinear3d_full(opd_tensor *self, opd_ints output_size, bool align_corners,
                                        opd_value scales_d, opd_value scales_h, opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_trilinear3d", "TTIbVVV", self, output_size, align_corners, scales_d,
                        scales_h, scales_w);
}
opd_tensor *opd_upsample_trilinear3d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_trilinear3d_backward", "TTIIb", grad_output, output_size, input_size,
                        align_corners);
}
opd_tensor *opd_upsample_trilinear3d_backward_full(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners, opd_value scales_d, opd_value scales_h,
                                        opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_trilinear3d_backward", "TTIIbVVV", grad_output, output_size, input_size,
                        align_corners, scales_d, scales_h, scales_w);
}
opd_tensor *opd_upsample_trilinear3d_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                        opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_trilinear3d.vec", "TTVbV", input, output_size, align_corners,
                        scale_factors);
}
opd_tensor *opd_upsample_trilinear3d_backward_vec(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners, opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_trilinear3d_backward.vec", "TTVIbV", grad_output,
                        opd_value_optional_ints(output_size), input_size, align_corners, scale_factors);
}
opd_tensor *opd_upsample_bicubic2d(opd_tensor *self, opd_ints output_size, bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bicubic2d", "TTIb", self, output_size, align_corners);
}
opd_tensor *opd_upsample_bicubic2d_full(opd_tensor *self, opd_ints output_size, bool align_corners, opd_value scales_h,
                                        opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bicubic2d", "TTIbVV", self, output_size, align_corners, scales_h,
                        scales_w);
}
opd_tensor *opd_upsample_bicubic2d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bicubic2d_backward", "TTIIb", grad_output, output_size, input_size,
                        align_corners);
}
opd_tensor *opd_upsample_bicubic2d_backward_full(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners, opd_value scales_h, opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bicubic2d_backward", "TTIIbVV", grad_output, output_size, input_size,
                        align_corners, scales_h, scales_w);
}
opd_tensor *opd_upsample_bicubic2d_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                       opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bicubic2d.vec", "TTVbV", input, output_size, align_corners, scale_factors);
}
opd_tensor *opd_upsample_bicubic2d_backward_vec(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners, opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::upsample_bicubic2d_backward.vec", "TTVIbV", grad_output,
                        opd_value_optional_ints(output_size), input_size, align_corners, scale_factors);
}
opd_tensor *opd__upsample_bilinear2d_aa(opd_tensor *self, opd_ints output_size, bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_bilinear2d_aa", "TTIb", self, output_size, align_corners);
}
opd_tensor *opd__upsample_bilinear2d_aa_full(opd_tensor *self, opd_ints output_size, bool align_corners,
                                        opd_value scales_h, opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_bilinear2d_aa", "TTIbVV", self, output_size, align_corners, scales_h,
                        scales_w);
}
opd_tensor *opd__upsample_bilinear2d_aa_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_bilinear2d_aa_backward", "TTIIb", grad_output, output_size, input_size,
                        align_corners);
}
opd_tensor *opd__upsample_bilinear2d_aa_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scales_h,
                                        opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_bilinear2d_aa_backward", "TTIIbVV", grad_output, output_size, input_size,
                        align_corners, scales_h, scales_w);
}
opd_tensor *opd__upsample_bilinear2d_aa_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                        opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_bilinear2d_aa.vec", "TTVbV", input, output_size, align_corners,
                        scale_factors);
}
opd_tensor *opd__upsample_bicubic2d_aa(opd_tensor *self, opd_ints output_size, bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_bicubic2d_aa", "TTIb", self, output_size, align_corners);
}
opd_tensor *opd__upsample_bicubic2d_aa_full(opd_tensor *self, opd_ints output_size, bool align_corners,
                                        opd_value scales_h, opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_bicubic2d_aa", "TTIbVV", self, output_size, align_corners, scales_h,
                        scales_w);
}
opd_tensor *opd__upsample_bicubic2d_aa_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_bicubic2d_aa_backward", "TTIIb", grad_output, output_size, input_size,
                        align_corners);
}
opd_tensor *opd__upsample_bicubic2d_aa_backward_full(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners, opd_value scales_h, opd_value scales_w) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_bicubic2d_aa_backward", "TTIIbVV", grad_output, output_size, input_size,
                        align_corners, scales_h, scales_w);
}
opd_tensor *opd__upsample_bicubic2d_aa_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                        opd_value scale_factors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_upsample_bicubic2d_aa.vec", "TTVbV", input, output_size, align_corners,
                        scale_factors);
}
opd_tensor *opd_grid_sampler(opd_tensor *input, opd_tensor *grid, int64_t interpolation_mode, int64_t padding_mode,
                             bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::grid_sampler", "TTTiib", input, grid, interpolation_mode, padding_mode,
                        align_corners);
}
opd_tensor *opd_affine_grid_generator(opd_tensor *theta, opd_ints size, bool align_corners) {
    static opd_op *op;
    return opd_given_op(&op, "aten::affine_grid_generator", "TTIb", theta, size, align_corners);
}
opd_tensor *opd_channel_shuffle(opd_tensor *self, int64_t groups) {
    static opd_op *op;
    return opd_given_op(&op, "aten::channel_shuffle", "TTi", self, groups);
}
opd_tensor *opd_native_channel_shuffle(opd_tensor *self, int64_t groups) {
    static opd_op *op;
    return opd_given_op(&op, "aten::native_channel_shuffle", "TTi", self, groups);
}
int opd_grid_sampler_3d_backward(opd_tensor **rets, opd_tensor *grad_output, opd_tensor *input, opd_tensor *grid,
                                 int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                 opd_value output_mask) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::grid_sampler_3d_backward", "NTTTiibV", rets, grad_output, input, grid,
                             interpolation_mode, padding_mode, align_corners, output_mask);
}
opd_tensor *opd_cdist(opd_tensor *x1, opd_tensor *x2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cdist", "TTT", x1, x2);
}
opd_tensor *opd_cdist_full(opd_tensor *x1, opd_tensor *x2, double p, opd_value compute_mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cdist", "TTTdV", x1, x2, p, compute_mode);
}
opd_tensor *opd_pdist_forward(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_pdist_forward", "TT", self);
}
opd_tensor *opd_pdist(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pdist", "TT", self);
}
opd_tensor *opd_pdist_full(opd_tensor *self, double p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pdist", "TTd", self, p);
}
opd_tensor *opd_fft_fft(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_fft", "TT", self);
}
opd_tensor *opd_fft_fft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_fft", "TTVis", self, n, dim, norm);
}
opd_tensor *opd_fft_ifft(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ifft", "TT", self);
}
opd_tensor *opd_fft_ifft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ifft", "TTVis", self, n, dim, norm);
}
opd_tensor *opd_fft_rfft(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_rfft", "TT", self);
}
opd_tensor *opd_fft_rfft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_rfft", "TTVis", self, n, dim, norm);
}
opd_tensor *opd_fft_irfft(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_irfft", "TT", self);
}
opd_tensor *opd_fft_irfft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_irfft", "TTVis", self, n, dim, norm);
}
opd_tensor *opd_fft_hfft(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_hfft", "TT", self);
}
opd_tensor *opd_fft_hfft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_hfft", "TTVis", self, n, dim, norm);
}
opd_tensor *opd_fft_ihfft(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ihfft", "TT", self);
}
opd_tensor *opd_fft_ihfft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ihfft", "TTVis", self, n, dim, norm);
}
opd_tensor *opd_fft_fft2(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_fft2", "TT", self);
}
opd_tensor *opd_fft_fft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_fft2", "TTVIs", self, opd_value_optional_ints(s), dim, norm);
}
opd_tensor *opd_fft_ifft2(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ifft2", "TT", self);
}
opd_tensor *opd_fft_ifft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ifft2", "TTVIs", self, opd_value_optional_ints(s), dim, norm);
}
opd_tensor *opd_fft_rfft2(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_rfft2", "TT", self);
}
opd_tensor *opd_fft_rfft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_rfft2", "TTVIs", self, opd_value_optional_ints(s), dim, norm);
}
opd_tensor *opd_fft_irfft2(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_irfft2", "TT", self);
}
opd_tensor *opd_fft_irfft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_irfft2", "TTVIs", self, opd_value_optional_ints(s), dim, norm);
}
opd_tensor *opd_fft_hfft2(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_hfft2", "TT", self);
}
opd_tensor *opd_fft_hfft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_hfft2", "TTVIs", self, opd_value_optional_ints(s), dim, norm);
}
opd_tensor *opd_fft_ihfft2(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ihfft2", "TT", self);
}
opd_tensor *opd_fft_ihfft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ihfft2", "TTVIs", self, opd_value_optional_ints(s), dim, norm);
}
opd_tensor *opd_fft_fftn(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_fftn", "TT", self);
}
opd_tensor *opd_fft_fftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_fftn", "TTVVs", self, opd_value_optional_ints(s), opd_value_optional_ints(dim),
                        norm);
}
opd_tensor *opd_fft_ifftn(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ifftn", "TT", self);
}
opd_tensor *opd_fft_ifftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ifftn", "TTVVs", self, opd_value_optional_ints(s), opd_value_optional_ints(dim),
                        norm);
}
opd_tensor *opd_fft_rfftn(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_rfftn", "TT", self);
}
opd_tensor *opd_fft_rfftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_rfftn", "TTVVs", self, opd_value_optional_ints(s), opd_value_optional_ints(dim),
                        norm);
}
opd_tensor *opd_fft_irfftn(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_irfftn", "TT", self);
}
opd_tensor *opd_fft_irfftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_irfftn", "TTVVs", self, opd_value_optional_ints(s),
                        opd_value_optional_ints(dim), norm);
}
opd_tensor *opd_fft_hfftn(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_hfftn", "TT", self);
}
opd_tensor *opd_fft_hfftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_hfftn", "TTVVs", self, opd_value_optional_ints(s), opd_value_optional_ints(dim),
                        norm);
}
opd_tensor *opd_fft_ihfftn(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ihfftn", "TT", self);
}
opd_tensor *opd_fft_ihfftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ihfftn", "TTVVs", self, opd_value_optional_ints(s),
                        opd_value_optional_ints(dim), norm);
}
opd_tensor *opd_fft_fftshift(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_fftshift", "TT", self);
}
opd_tensor *opd_fft_fftshift_full(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_fftshift", "TTV", self, opd_value_optional_ints(dim));
}
opd_tensor *opd_fft_ifftshift(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ifftshift", "TT", self);
}
opd_tensor *opd_fft_ifftshift_full(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_ifftshift", "TTV", self, opd_value_optional_ints(dim));
}
opd_tensor *opd_fft_fftfreq(int64_t n, double d, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_fftfreq", "TidV", n, d, opd_value_dtype(dtype));
}
opd_tensor *opd_fft_fftfreq_full(int64_t n, double d, opd_value dtype, opd_value layout, opd_value device,
                                 opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_fftfreq", "TidVVVV", n, d, dtype, layout, device, pin_memory);
}
opd_tensor *opd_fft_rfftfreq(int64_t n, double d, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_rfftfreq", "TidV", n, d, opd_value_dtype(dtype));
}
opd_tensor *opd_fft_rfftfreq_full(int64_t n, double d, opd_value dtype, opd_value layout, opd_value device,
                                  opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fft_rfftfreq", "TidVVVV", n, d, dtype, layout, device, pin_memory);
}
opd_tensor *opd_hann_window(int64_t window_length, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hann_window", "TiV", window_length, opd_value_dtype(dtype));
}
opd_tensor *opd_hann_window_full(int64_t window_length, opd_value dtype, opd_value layout, opd_value device,
                                 opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hann_window", "TiVVVV", window_length, dtype, layout, device, pin_memory);
}
opd_tensor *opd_hann_window_periodic(int64_t window_length, bool periodic, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hann_window.periodic", "TibV", window_length, periodic, opd_value_dtype(dtype));
}
opd_tensor *opd_hann_window_periodic_full(int64_t window_length, bool periodic, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hann_window.periodic", "TibVVVV", window_length, periodic, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_hamming_window(int64_t window_length, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hamming_window", "TiV", window_length, opd_value_dtype(dtype));
}
opd_tensor *opd_hamming_window_full(int64_t window_length, opd_value dtype, opd_value layout, opd_value device,
                                    opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hamming_window", "TiVVVV", window_length, dtype, layout, device, pin_memory);
}
opd_tensor *opd_hamming_window_periodic(int64_t window_length, bool periodic, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hamming_window.periodic", "TibV", window_length, periodic, opd_value_dtype(dtype));
}
opd_tensor *opd_hamming_window_periodic_full(int64_t window_length, bool periodic, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hamming_window.periodic", "TibVVVV", window_length, periodic, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_hamming_window_periodic_alpha(int64_t window_length, bool periodic, double alpha,
                                        opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hamming_window.periodic_alpha", "TibdV", window_length, periodic, alpha,
                        opd_value_dtype(dtype));
}
opd_tensor *opd_hamming_window_periodic_alpha_full(int64_t window_length, bool periodic, double alpha, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hamming_window.periodic_alpha", "TibdVVVV", window_length, periodic, alpha, dtype,
                        layout, device, pin_memory);
}
opd_tensor *opd_hamming_window_periodic_alpha_beta(int64_t window_length, bool periodic, double alpha, double beta,
                                        opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hamming_window.periodic_alpha_beta", "TibddV", window_length, periodic, alpha, beta,
                        opd_value_dtype(dtype));
}
opd_tensor *opd_hamming_window_periodic_alpha_beta_full(int64_t window_length, bool periodic, double alpha, double beta,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hamming_window.periodic_alpha_beta", "TibddVVVV", window_length, periodic, alpha,
                        beta, dtype, layout, device, pin_memory);
}
opd_tensor *opd_blackman_window(int64_t window_length, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::blackman_window", "TiV", window_length, opd_value_dtype(dtype));
}
opd_tensor *opd_blackman_window_full(int64_t window_length, opd_value dtype, opd_value layout, opd_value device,
                                     opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::blackman_window", "TiVVVV", window_length, dtype, layout, device, pin_memory);
}
opd_tensor *opd_blackman_window_periodic(int64_t window_length, bool periodic, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::blackman_window.periodic", "TibV", window_length, periodic, opd_value_dtype(dtype));
}
opd_tensor *opd_blackman_window_periodic_full(int64_t window_length, bool periodic, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::blackman_window.periodic", "TibVVVV", window_length, periodic, dtype, layout,
                        device, pin_memory);
}
opd_tensor *opd_bartlett_window(int64_t window_length, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bartlett_window", "TiV", window_length, opd_value_dtype(dtype));
}
opd_tensor *opd_bartlett_window_full(int64_t window_length, opd_value dtype, opd_value layout, opd_value device,
                                     opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bartlett_window", "TiVVVV", window_length, dtype, layout, device, pin_memory);
}
opd_tensor *opd_bartlett_window_periodic(int64_t window_length, bool periodic, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bartlett_window.periodic", "TibV", window_length, periodic, opd_value_dtype(dtype));
}
opd_tensor *opd_bartlett_window_periodic_full(int64_t window_length, bool periodic, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bartlett_window.periodic", "TibVVVV", window_length, periodic, dtype, layout,
                        device, pin_memory);
}
opd_tensor *opd_kaiser_window(int64_t window_length, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::kaiser_window", "TiV", window_length, opd_value_dtype(dtype));
}
opd_tensor *opd_kaiser_window_full(int64_t window_length, opd_value dtype, opd_value layout, opd_value device,
                                   opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::kaiser_window", "TiVVVV", window_length, dtype, layout, device, pin_memory);
}
opd_tensor *opd_kaiser_window_periodic(int64_t window_length, bool periodic, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::kaiser_window.periodic", "TibV", window_length, periodic, opd_value_dtype(dtype));
}
opd_tensor *opd_kaiser_window_periodic_full(int64_t window_length, bool periodic, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::kaiser_window.periodic", "TibVVVV", window_length, periodic, dtype, layout, device,
                        pin_memory);
}
opd_tensor *opd_kaiser_window_beta(int64_t window_length, bool periodic, double beta, opd_scalar_type dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::kaiser_window.beta", "TibdV", window_length, periodic, beta,
                        opd_value_dtype(dtype));
}
opd_tensor *opd_kaiser_window_beta_full(int64_t window_length, bool periodic, double beta, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory) {
    static opd_op *op;
    return opd_given_op(&op, "aten::kaiser_window.beta", "TibdVVVV", window_length, periodic, beta, dtype, layout,
                        device, pin_memory);
}
opd_tensor *opd_stft(opd_tensor *self, int64_t n_fft) {
    static opd_op *op;
    return opd_given_op(&op, "aten::stft", "TTi", self, n_fft);
}
opd_tensor *opd_stft_full(opd_tensor *self, int64_t n_fft, opd_value hop_length, opd_value win_length,
                          opd_tensor *window, bool normalized, opd_value onesided, opd_value return_complex,
                          opd_value align_to_window) {
    static opd_op *op;
    return opd_given_op(&op, "aten::stft", "TTiVVTbVVV", self, n_fft, hop_length, win_length, window, normalized,
                        onesided, return_complex, align_to_window);
}
opd_tensor *opd_stft_center(opd_tensor *self, int64_t n_fft) {
    static opd_op *op;
    return opd_given_op(&op, "aten::stft.center", "TTi", self, n_fft);
}
opd_tensor *opd_stft_center_full(opd_tensor *self, int64_t n_fft, opd_value hop_length, opd_value win_length,
                                 opd_tensor *window, bool center, const char *pad_mode, bool normalized,
                                 opd_value onesided, opd_value return_complex, opd_value align_to_window) {
    static opd_op *op;
    return opd_given_op(&op, "aten::stft.center", "TTiVVTbsbVVV", self, n_fft, hop_length, win_length, window, center,
                        pad_mode, normalized, onesided, return_complex, align_to_window);
}
opd_tensor *opd_istft(opd_tensor *self, int64_t n_fft) {
    static opd_op *op;
    return opd_given_op(&op, "aten::istft", "TTi", self, n_fft);
}
opd_tensor *opd_istft_full(opd_tensor *self, int64_t n_fft, opd_value hop_length, opd_value win_length,
                           opd_tensor *window, bool center, bool normalized, opd_value onesided, opd_value length,
                           bool return_complex) {
    static opd_op *op;
    return opd_given_op(&op, "aten::istft", "TTiVVTbbVVb", self, n_fft, hop_length, win_length, window, center,
                        normalized, onesided, length, return_complex);
}
int opd_linalg_cholesky_ex(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_cholesky_ex", "NT", rets, self);
}
opd_tensor *opd_linalg_cholesky(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_cholesky", "TT", self);
}
opd_tensor *opd_cholesky(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cholesky", "TT", self);
}
opd_tensor *opd_cholesky_full(opd_tensor *self, bool upper) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cholesky", "TTb", self, upper);
}
opd_tensor *opd_cholesky_solve(opd_tensor *self, opd_tensor *input2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cholesky_solve", "TTT", self, input2);
}
opd_tensor *opd_cholesky_inverse(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cholesky_inverse", "TT", self);
}
opd_tensor *opd_cholesky_inverse_full(opd_tensor *self, bool upper) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cholesky_inverse", "TTb", self, upper);
}
opd_tensor *opd_linalg_solve_triangular(opd_tensor *self, opd_tensor *b, bool upper) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_solve_triangular", "TTTb", self, b, upper);
}
int opd_triangular_solve(opd_tensor **rets, opd_tensor *self, opd_tensor *a) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::triangular_solve", "NTT", rets, self, a);
}
int opd_triangular_solve_full(opd_tensor **rets, opd_tensor *self, opd_tensor *a, bool upper, bool transpose,
                              bool unitriangular) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::triangular_solve", "NTTbbb", rets, self, a, upper, transpose, unitriangular);
}
int opd_linalg_lu_factor(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_lu_factor", "NT", rets, a);
}
int opd_linalg_lu_factor_full(opd_tensor **rets, opd_tensor *a, bool pivot) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_lu_factor", "NTb", rets, a, pivot);
}
int opd__lu_with_info(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_lu_with_info", "NT", rets, self);
}
int opd__lu_with_info_full(opd_tensor **rets, opd_tensor *self, bool pivot, bool check_errors) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_lu_with_info", "NTbb", rets, self, pivot, check_errors);
}
int opd_linalg_lu(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_lu", "NT", rets, a);
}
int opd_linalg_lu_full(opd_tensor **rets, opd_tensor *a, bool pivot) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_lu", "NTb", rets, a, pivot);
}
opd_tensor *opd_lu_solve(opd_tensor *self, opd_tensor *lu_data, opd_tensor *lu_pivots) {
    static opd_op *op;
    return opd_given_op(&op, "aten::lu_solve", "TTTT", self, lu_data, lu_pivots);
}
int opd__linalg_solve_ex(opd_tensor **rets, opd_tensor *a, opd_tensor *b) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_linalg_solve_ex", "NTT", rets, a, b);
}
int opd_linalg_solve_ex_full(opd_tensor **rets, opd_tensor *a, opd_tensor *b, bool left, bool check_errors) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_solve_ex", "NTTbb", rets, a, b, left, check_errors);
}
int opd_linalg_ldl_factor_ex(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_ldl_factor_ex", "NT", rets, self);
}
int opd_linalg_ldl_factor(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_ldl_factor", "NT", rets, self);
}
int opd_linalg_ldl_factor_full(opd_tensor **rets, opd_tensor *self, bool hermitian) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_ldl_factor", "NTb", rets, self, hermitian);
}
opd_tensor *opd_linalg_ldl_solve(opd_tensor *ld, opd_tensor *pivots, opd_tensor *b) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_ldl_solve", "TTTT", ld, pivots, b);
}
int opd_linalg_inv_ex_full(opd_tensor **rets, opd_tensor *a, bool check_errors) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_inv_ex", "NTb", rets, a, check_errors);
}
opd_tensor *opd_inverse(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::inverse", "TT", self);
}
opd_tensor *opd_det(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::det", "TT", self);
}
int opd_linalg_slogdet(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_slogdet", "NT", rets, a);
}
int opd_slogdet(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::slogdet", "NT", rets, self);
}
opd_tensor *opd_logdet(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::logdet", "TT", self);
}
int opd_geqrf(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::geqrf", "NT", rets, self);
}
opd_tensor *opd_orgqr(opd_tensor *self, opd_tensor *input2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::orgqr", "TTT", self, input2);
}
opd_tensor *opd_ormqr(opd_tensor *self, opd_tensor *input2, opd_tensor *input3) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ormqr", "TTTT", self, input2, input3);
}
int opd_qr(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::qr", "NT", rets, self);
}
int opd_qr_full(opd_tensor **rets, opd_tensor *self, bool some) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::qr", "NTb", rets, self, some);
}
int opd__linalg_eigh(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_linalg_eigh", "NT", rets, a);
}
int opd_linalg_eigh_full(opd_tensor **rets, opd_tensor *self, const char *uplo) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_eigh", "NTs", rets, self, uplo);
}
opd_tensor *opd_linalg_eigvalsh_full(opd_tensor *self, const char *uplo) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_eigvalsh", "TTs", self, uplo);
}
opd_tensor *opd_linalg_eigvals(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_eigvals", "TT", self);
}
int opd_linalg_svd(opd_tensor **rets, opd_tensor *a) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_svd", "NT", rets, a);
}
opd_tensor *opd_linalg_svdvals_full(opd_tensor *a, const char *driver) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_svdvals", "TTs", a, driver);
}
opd_tensor *opd_linalg_cross(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_cross", "TTT", self, other);
}
opd_tensor *opd_linalg_cross_full(opd_tensor *self, opd_tensor *other, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_cross", "TTTi", self, other, dim);
}
opd_tensor *opd_cross(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cross", "TTT", self, other);
}
opd_tensor *opd_cross_full(opd_tensor *self, opd_tensor *other, opd_value dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cross", "TTTV", self, other, dim);
}
opd_tensor *opd_linalg_vecdot(opd_tensor *x, opd_tensor *y) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_vecdot", "TTT", x, y);
}
opd_tensor *opd_linalg_vecdot_full(opd_tensor *x, opd_tensor *y, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_vecdot", "TTTi", x, y, dim);
}
opd_tensor *opd_linalg_matrix_power(opd_tensor *self, int64_t n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_power", "TTi", self, n);
}
opd_tensor *opd_matrix_power(opd_tensor *self, int64_t n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::matrix_power", "TTi", self, n);
}
opd_tensor *opd_linalg_vander(opd_tensor *x) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_vander", "TT", x);
}
opd_tensor *opd_linalg_vander_full(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_vander", "TTV", x, n);
}
opd_tensor *opd_vander(opd_tensor *x) {
    static opd_op *op;
    return opd_given_op(&op, "aten::vander", "TT", x);
}
opd_tensor *opd_vander_full(opd_tensor *x, opd_value n, bool increasing) {
    static opd_op *op;
    return opd_given_op(&op, "aten::vander", "TTVb", x, n, increasing);
}
opd_tensor *opd_linalg_matmul(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matmul", "TTT", self, other);
}
opd_tensor *opd_linalg_tensorinv(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_tensorinv", "TT", self);
}
opd_tensor *opd_linalg_tensorinv_full(opd_tensor *self, int64_t ind) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_tensorinv", "TTi", self, ind);
}
opd_tensor *opd_linalg_matrix_norm(opd_tensor *self, opd_value ord) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_norm", "TTV", self, ord);
}
opd_tensor *opd_linalg_matrix_norm_full(opd_tensor *self, opd_value ord, opd_ints dim, bool keepdim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_norm", "TTVIbV", self, ord, dim, keepdim, dtype);
}
opd_tensor *opd_linalg_matrix_norm_str_ord(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_norm.str_ord", "TT", self);
}
opd_tensor *opd_linalg_matrix_norm_str_ord_full(opd_tensor *self, const char *ord, opd_ints dim, bool keepdim,
                                        opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_norm.str_ord", "TTsIbV", self, ord, dim, keepdim, dtype);
}
opd_tensor *opd_linalg_norm(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_norm", "TT", self);
}
opd_tensor *opd_linalg_norm_full(opd_tensor *self, opd_value ord, opd_ints dim, bool keepdim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_norm", "TTVVbV", self, ord, opd_value_optional_ints(dim), keepdim, dtype);
}
opd_tensor *opd_linalg_norm_ord_str(opd_tensor *self, const char *ord) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_norm.ord_str", "TTs", self, ord);
}
opd_tensor *opd_linalg_norm_ord_str_full(opd_tensor *self, const char *ord, opd_ints dim, bool keepdim,
                                        opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_norm.ord_str", "TTsVbV", self, ord, opd_value_optional_ints(dim), keepdim,
                        dtype);
}
opd_tensor *opd_nuclear_norm(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nuclear_norm", "TT", self);
}
opd_tensor *opd_nuclear_norm_full(opd_tensor *self, bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nuclear_norm", "TTb", self, keepdim);
}
opd_tensor *opd_nuclear_norm_dim(opd_tensor *self, opd_ints dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nuclear_norm.dim", "TTI", self, dim);
}
opd_tensor *opd_nuclear_norm_dim_full(opd_tensor *self, opd_ints dim, bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nuclear_norm.dim", "TTIb", self, dim, keepdim);
}
opd_tensor *opd_linalg_cond(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_cond", "TT", self);
}
opd_tensor *opd_linalg_cond_full(opd_tensor *self, opd_value p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_cond", "TTV", self, p);
}
opd_tensor *opd_linalg_cond_p_str(opd_tensor *self, const char *p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_cond.p_str", "TTs", self, p);
}
opd_tensor *opd_linalg_matrix_rank(opd_tensor *self, double tol) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_rank", "TTd", self, tol);
}
opd_tensor *opd_linalg_matrix_rank_full(opd_tensor *self, double tol, bool hermitian) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_rank", "TTdb", self, tol, hermitian);
}
opd_tensor *opd_linalg_matrix_rank_tol_tensor(opd_tensor *input, opd_tensor *tol) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_rank.tol_tensor", "TTT", input, tol);
}
opd_tensor *opd_linalg_matrix_rank_tol_tensor_full(opd_tensor *input, opd_tensor *tol, bool hermitian) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_rank.tol_tensor", "TTTb", input, tol, hermitian);
}
opd_tensor *opd_linalg_matrix_rank_atol_rtol_float(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_rank.atol_rtol_float", "TT", self);
}
opd_tensor *opd_linalg_matrix_rank_atol_rtol_float_full(opd_tensor *self, opd_value atol, opd_value rtol,
                                        bool hermitian) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_rank.atol_rtol_float", "TTVVb", self, atol, rtol, hermitian);
}
opd_tensor *opd_linalg_matrix_rank_atol_rtol_tensor(opd_tensor *input) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_rank.atol_rtol_tensor", "TT", input);
}
opd_tensor *opd_linalg_matrix_rank_atol_rtol_tensor_full(opd_tensor *input, opd_tensor *atol, opd_tensor *rtol,
                                        bool hermitian) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_matrix_rank.atol_rtol_tensor", "TTTTb", input, atol, rtol, hermitian);
}
opd_tensor *opd_linalg_pinv_atol_rtol_float(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_pinv.atol_rtol_float", "TT", self);
}
opd_tensor *opd_linalg_pinv_atol_rtol_float_full(opd_tensor *self, opd_value atol, opd_value rtol, bool hermitian) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_pinv.atol_rtol_float", "TTVVb", self, atol, rtol, hermitian);
}
opd_tensor *opd_linalg_pinv(opd_tensor *self, double rcond) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_pinv", "TTd", self, rcond);
}
opd_tensor *opd_linalg_pinv_full(opd_tensor *self, double rcond, bool hermitian) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_pinv", "TTdb", self, rcond, hermitian);
}
opd_tensor *opd_linalg_pinv_rcond_tensor(opd_tensor *self, opd_tensor *rcond) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_pinv.rcond_tensor", "TTT", self, rcond);
}
opd_tensor *opd_linalg_pinv_rcond_tensor_full(opd_tensor *self, opd_tensor *rcond, bool hermitian) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_pinv.rcond_tensor", "TTTb", self, rcond, hermitian);
}
opd_tensor *opd_pinverse(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pinverse", "TT", self);
}
opd_tensor *opd_pinverse_full(opd_tensor *self, double rcond) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pinverse", "TTd", self, rcond);
}
opd_tensor *opd_linalg_multi_dot(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_multi_dot", "TL", tensors);
}
opd_tensor *opd_chain_matmul(opd_tensors matrices) {
    static opd_op *op;
    return opd_given_op(&op, "aten::chain_matmul", "TL", matrices);
}
opd_tensor *opd_matrix_exp(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::matrix_exp", "TT", self);
}
opd_tensor *opd_linalg_tensorsolve(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_tensorsolve", "TTT", self, other);
}
opd_tensor *opd_linalg_tensorsolve_full(opd_tensor *self, opd_tensor *other, opd_ints dims) {
    static opd_op *op;
    return opd_given_op(&op, "aten::linalg_tensorsolve", "TTTV", self, other, opd_value_optional_ints(dims));
}
int opd_svd(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::svd", "NT", rets, self);
}
int opd_svd_full(opd_tensor **rets, opd_tensor *self, bool some, bool compute_uv) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::svd", "NTbb", rets, self, some, compute_uv);
}
int opd_linalg_lstsq(opd_tensor **rets, opd_tensor *self, opd_tensor *b) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_lstsq", "NTT", rets, self, b);
}
int opd_linalg_lstsq_full(opd_tensor **rets, opd_tensor *self, opd_tensor *b, opd_value rcond, const char *driver) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::linalg_lstsq", "NTTVs", rets, self, b, rcond, driver);
}
opd_tensor *opd_lgamma_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::lgamma_", "TT", self);
}
opd_tensor *opd_digamma_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::digamma_", "TT", self);
}
opd_tensor *opd_polygamma_(opd_tensor *self, int64_t n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::polygamma_", "TTi", self, n);
}
opd_tensor *opd_mvlgamma(opd_tensor *self, int64_t p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::mvlgamma", "TTi", self, p);
}
opd_tensor *opd_mvlgamma_(opd_tensor *self, int64_t p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::mvlgamma_", "TTi", self, p);
}
opd_tensor *opd_erfinv(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::erfinv", "TT", self);
}
opd_tensor *opd_erfinv_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::erfinv_", "TT", self);
}
opd_tensor *opd_special_ndtri(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_ndtri", "TT", self);
}
opd_tensor *opd_special_log_ndtr(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_log_ndtr", "TT", self);
}
opd_tensor *opd_special_erfcx(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_erfcx", "TT", self);
}
opd_tensor *opd_special_entr(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_entr", "TT", self);
}
opd_tensor *opd_special_ndtr(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_ndtr", "TT", self);
}
opd_tensor *opd_i0_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::i0_", "TT", self);
}
opd_tensor *opd_special_scaled_modified_bessel_k0(opd_tensor *x) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_scaled_modified_bessel_k0", "TT", x);
}
opd_tensor *opd_special_scaled_modified_bessel_k1(opd_tensor *x) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_scaled_modified_bessel_k1", "TT", x);
}
opd_tensor *opd_special_spherical_bessel_j0(opd_tensor *x) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_spherical_bessel_j0", "TT", x);
}
opd_tensor *opd_special_airy_ai(opd_tensor *x) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_airy_ai", "TT", x);
}
opd_tensor *opd_igamma(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::igamma", "TTT", self, other);
}
opd_tensor *opd_igamma_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::igamma_", "TTT", self, other);
}
opd_tensor *opd_igammac(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::igammac", "TTT", self, other);
}
opd_tensor *opd_igammac_(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::igammac_", "TTT", self, other);
}
opd_tensor *opd_special_xlog1py_self_scalar(opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_xlog1py.self_scalar", "TVT", self, other);
}
opd_tensor *opd_special_xlog1py_other_scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_xlog1py.other_scalar", "TTV", self, other);
}
opd_tensor *opd_special_zeta_self_scalar(opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_zeta.self_scalar", "TVT", self, other);
}
opd_tensor *opd_special_zeta_other_scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_zeta.other_scalar", "TTV", self, other);
}
opd_tensor *opd_special_chebyshev_polynomial_t(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_t", "TTT", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_t_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_t.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_t_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_t.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_u(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_u", "TTT", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_u_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_u.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_u_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_u.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_v(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_v", "TTT", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_v_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_v.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_v_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_v.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_w(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_w", "TTT", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_w_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_w.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_chebyshev_polynomial_w_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_chebyshev_polynomial_w.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_t(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_t", "TTT", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_t_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_t.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_t_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_t.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_u(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_u", "TTT", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_u_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_u.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_u_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_u.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_v(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_v", "TTT", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_v_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_v.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_v_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_v.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_w(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_w", "TTT", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_w_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_w.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_shifted_chebyshev_polynomial_w_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_shifted_chebyshev_polynomial_w.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_hermite_polynomial_h(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_hermite_polynomial_h", "TTT", x, n);
}
opd_tensor *opd_special_hermite_polynomial_h_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_hermite_polynomial_h.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_hermite_polynomial_h_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_hermite_polynomial_h.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_hermite_polynomial_he(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_hermite_polynomial_he", "TTT", x, n);
}
opd_tensor *opd_special_hermite_polynomial_he_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_hermite_polynomial_he.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_hermite_polynomial_he_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_hermite_polynomial_he.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_laguerre_polynomial_l(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_laguerre_polynomial_l", "TTT", x, n);
}
opd_tensor *opd_special_laguerre_polynomial_l_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_laguerre_polynomial_l.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_laguerre_polynomial_l_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_laguerre_polynomial_l.n_scalar", "TTV", x, n);
}
opd_tensor *opd_special_legendre_polynomial_p(opd_tensor *x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_legendre_polynomial_p", "TTT", x, n);
}
opd_tensor *opd_special_legendre_polynomial_p_x_scalar(opd_value x, opd_tensor *n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_legendre_polynomial_p.x_scalar", "TVT", x, n);
}
opd_tensor *opd_special_legendre_polynomial_p_n_scalar(opd_tensor *x, opd_value n) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_legendre_polynomial_p.n_scalar", "TTV", x, n);
}
int opd_frexp_Tensor(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::frexp.Tensor", "NT", rets, self);
}
opd_tensor *opd_special_psi(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_psi", "TT", self);
}
opd_tensor *opd_special_digamma(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_digamma", "TT", self);
}
opd_tensor *opd_special_gammaln(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_gammaln", "TT", self);
}
opd_tensor *opd_special_multigammaln(opd_tensor *self, int64_t p) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_multigammaln", "TTi", self, p);
}
opd_tensor *opd_special_polygamma(int64_t n, opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_polygamma", "TiT", n, self);
}
opd_tensor *opd_special_gammainc(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_gammainc", "TTT", self, other);
}
opd_tensor *opd_special_gammaincc(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_gammaincc", "TTT", self, other);
}
opd_tensor *opd_special_i0(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_i0", "TT", self);
}
opd_tensor *opd_special_erf(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_erf", "TT", self);
}
opd_tensor *opd_special_erfc(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_erfc", "TT", self);
}
opd_tensor *opd_special_erfinv(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_erfinv", "TT", self);
}
opd_tensor *opd_special_exp2(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_exp2", "TT", self);
}
opd_tensor *opd_special_expm1(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_expm1", "TT", self);
}
opd_tensor *opd_special_log1p(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_log1p", "TT", self);
}
opd_tensor *opd_special_expit(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_expit", "TT", self);
}
opd_tensor *opd_special_logit(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_logit", "TT", self);
}
opd_tensor *opd_special_logit_full(opd_tensor *self, opd_value eps) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_logit", "TTV", self, eps);
}
opd_tensor *opd_special_sinc(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_sinc", "TT", self);
}
opd_tensor *opd_special_round(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_round", "TT", self);
}
opd_tensor *opd_special_round_full(opd_tensor *self, int64_t decimals) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_round", "TTi", self, decimals);
}
opd_tensor *opd_special_xlogy(opd_tensor *self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_xlogy", "TTT", self, other);
}
opd_tensor *opd_special_xlogy_self_scalar(opd_value self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_xlogy.self_scalar", "TVT", self, other);
}
opd_tensor *opd_special_xlogy_other_scalar(opd_tensor *self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::special_xlogy.other_scalar", "TTV", self, other);
}
opd_tensor *opd_dirichlet_grad(opd_tensor *x, opd_tensor *alpha, opd_tensor *total) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_dirichlet_grad", "TTTT", x, alpha, total);
}
opd_tensor *opd_group_norm(opd_tensor *input, int64_t num_groups) {
    static opd_op *op;
    return opd_given_op(&op, "aten::group_norm", "TTi", input, num_groups);
}
int opd_native_batch_norm_legit(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                                opd_tensor *running_mean, opd_tensor *running_var, bool training, double momentum,
                                double eps) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_native_batch_norm_legit", "NTTTTTbdd", rets, input, weight, bias,
                             running_mean, running_var, training, momentum, eps);
}
int opd_native_batch_norm_legit_no_stats(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                                        bool training, double momentum, double eps) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_native_batch_norm_legit.no_stats", "NTTTbdd", rets, input, weight, bias,
                             training, momentum, eps);
}
int opd_native_batch_norm_legit_no_training(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                                        opd_tensor *running_mean, opd_tensor *running_var, double momentum,
                                        double eps) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_native_batch_norm_legit_no_training", "NTTTTTdd", rets, input, weight, bias,
                             running_mean, running_var, momentum, eps);
}
int opd_native_batch_norm_legit_functional(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                                        opd_tensor *running_mean, opd_tensor *running_var, bool training,
                                        double momentum, double eps) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_native_batch_norm_legit_functional", "NTTTTTbdd", rets, input, weight, bias,
                             running_mean, running_var, training, momentum, eps);
}
int opd_batch_norm_with_update(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                               opd_tensor *running_mean, opd_tensor *running_var, double momentum, double eps) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_batch_norm_with_update", "NTTTTTdd", rets, input, weight, bias, running_mean,
                             running_var, momentum, eps);
}
int opd_batch_norm_with_update_functional(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                                        opd_tensor *running_mean, opd_tensor *running_var, double momentum,
                                        double eps) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_batch_norm_with_update_functional", "NTTTTTdd", rets, input, weight, bias,
                             running_mean, running_var, momentum, eps);
}
int opd_batch_norm_no_update(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                             opd_tensor *running_mean, opd_tensor *running_var, double momentum, double eps) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_batch_norm_no_update", "NTTTTTdd", rets, input, weight, bias, running_mean,
                             running_var, momentum, eps);
}
int opd_batch_norm_backward(opd_tensor **rets, opd_tensor *grad_out, opd_tensor *input, opd_tensor *weight,
                            opd_tensor *running_mean, opd_tensor *running_var, opd_tensor *save_mean,
                            opd_tensor *save_var, bool update, double eps, opd_value output_mask, opd_tensor *reserve) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::batch_norm_backward", "NTTTTTTTbdVT", rets, grad_out, input, weight,
                             running_mean, running_var, save_mean, save_var, update, eps, output_mask, reserve);
}
opd_tensor *opd_rms_norm(opd_tensor *input, opd_ints normalized_shape) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rms_norm", "TTI", input, normalized_shape);
}
opd_tensor *opd_rms_norm_full(opd_tensor *input, opd_ints normalized_shape, opd_tensor *weight, opd_value eps) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rms_norm", "TTITV", input, normalized_shape, weight, eps);
}
int opd_fused_rms_norm(opd_tensor **rets, opd_tensor *input, opd_ints normalized_shape, opd_tensor *weight,
                       opd_value eps) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_fused_rms_norm", "NTITV", rets, input, normalized_shape, weight, eps);
}
opd_tensor *opd_weight_norm(opd_tensor *v, opd_tensor *g) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_weight_norm", "TTT", v, g);
}
opd_tensor *opd_weight_norm_full(opd_tensor *v, opd_tensor *g, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_weight_norm", "TTTi", v, g, dim);
}
int opd_weight_norm_interface(opd_tensor **rets, opd_tensor *v, opd_tensor *g) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_weight_norm_interface", "NTT", rets, v, g);
}
int opd_weight_norm_interface_backward(opd_tensor **rets, opd_tensor *grad_w, opd_tensor *saved_v, opd_tensor *saved_g,
                                       opd_tensor *saved_norms, int64_t dim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_weight_norm_interface_backward", "NTTTTi", rets, grad_w, saved_v, saved_g,
                             saved_norms, dim);
}
int opd_native_dropout(opd_tensor **rets, opd_tensor *input, double p, opd_value train) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::native_dropout", "NTdV", rets, input, p, train);
}
opd_tensor *opd_dropout_(opd_tensor *self, double p, bool train) {
    static opd_op *op;
    return opd_given_op(&op, "aten::dropout_", "TTdb", self, p, train);
}
opd_tensor *opd_feature_dropout(opd_tensor *input, double p, bool train) {
    static opd_op *op;
    return opd_given_op(&op, "aten::feature_dropout", "TTdb", input, p, train);
}
opd_tensor *opd_feature_dropout_(opd_tensor *self, double p, bool train) {
    static opd_op *op;
    return opd_given_op(&op, "aten::feature_dropout_", "TTdb", self, p, train);
}
opd_tensor *opd_fake_quantize_per_tensor_affine_tensor_qparams(opd_tensor *self, opd_tensor *scale,
                                        opd_tensor *zero_point, int64_t quant_min, int64_t quant_max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fake_quantize_per_tensor_affine.tensor_qparams", "TTTTii", self, scale, zero_point,
                        quant_min, quant_max);
}
opd_tensor *opd_fake_quantize_per_channel_affine_cachemask_backward(opd_tensor *grad, opd_tensor *mask) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fake_quantize_per_channel_affine_cachemask_backward", "TTT", grad, mask);
}
opd_tensor *opd_alpha_dropout(opd_tensor *input, double p, bool train) {
    static opd_op *op;
    return opd_given_op(&op, "aten::alpha_dropout", "TTdb", input, p, train);
}
opd_tensor *opd_feature_alpha_dropout(opd_tensor *input, double p, bool train) {
    static opd_op *op;
    return opd_given_op(&op, "aten::feature_alpha_dropout", "TTdb", input, p, train);
}
opd_tensor *opd_alpha_dropout_(opd_tensor *self, double p, bool train) {
    static opd_op *op;
    return opd_given_op(&op, "aten::alpha_dropout_", "TTdb", self, p, train);
}
opd_tensor *opd_feature_alpha_dropout_(opd_tensor *self, double p, bool train) {
    static opd_op *op;
    return opd_given_op(&op, "aten::feature_alpha_dropout_", "TTdb", self, p, train);
}
opd_tensor *opd_safe_softmax_full(opd_tensor *self, int64_t dim, opd_value dtype) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_safe_softmax", "TTiV", self, dim, dtype);
}
opd_tensor *opd__masked_softmax(opd_tensor *self, opd_tensor *mask) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_masked_softmax", "TTT", self, mask);
}
opd_tensor *opd__masked_softmax_full(opd_tensor *self, opd_tensor *mask, opd_value dim, opd_value mask_type) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_masked_softmax", "TTTVV", self, mask, dim, mask_type);
}
opd_tensor *opd__masked_softmax_backward(opd_tensor *grad_output, opd_tensor *output, opd_tensor *mask) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_masked_softmax_backward", "TTTT", grad_output, output, mask);
}
opd_tensor *opd__masked_softmax_backward_full(opd_tensor *grad_output, opd_tensor *output, opd_tensor *mask,
                                        opd_value dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_masked_softmax_backward", "TTTTV", grad_output, output, mask, dim);
}
opd_tensor *opd_scaled_dot_product_attention(opd_tensor *query, opd_tensor *key, opd_tensor *value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scaled_dot_product_attention", "TTTT", query, key, value);
}
opd_tensor *opd_scaled_dot_product_attention_full(opd_tensor *query, opd_tensor *key, opd_tensor *value,
                                        opd_tensor *attn_mask, double dropout_p, bool is_causal, opd_value scale,
                                        bool enable_gqa) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scaled_dot_product_attention", "TTTTTdbVb", query, key, value, attn_mask, dropout_p,
                        is_causal, scale, enable_gqa);
}
int opd__scaled_dot_product_attention(opd_tensor **rets, opd_tensor *query, opd_tensor *key, opd_tensor *value) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_scaled_dot_product_attention", "NTTT", rets, query, key, value);
}
int opd__scaled_dot_product_attention_full(opd_tensor **rets, opd_tensor *query, opd_tensor *key, opd_tensor *value,
                                        opd_tensor *attn_mask, double dropout_p, bool need_attn_weights,
                                        bool is_causal) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_scaled_dot_product_attention", "NTTTTdbb", rets, query, key, value, attn_mask,
                             dropout_p, need_attn_weights, is_causal);
}
int opd__scaled_dot_product_attention_forward(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_scaled_dot_product_attention_forward", "NTTT", rets, query, key, value);
}
int opd__scaled_dot_product_attention_forward_full(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value, opd_tensor *attn_mask, double dropout_p,
                                        bool need_attn_weights, bool is_causal) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_scaled_dot_product_attention_forward", "NTTTTdbb", rets, query, key, value,
                             attn_mask, dropout_p, need_attn_weights, is_causal);
}
int opd_scaled_dot_product_attention_math(opd_tensor **rets, opd_tensor *query, opd_tensor *key, opd_tensor *value) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_scaled_dot_product_attention_math", "NTTT", rets, query, key, value);
}
int opd_scaled_dot_product_flash_attention_for_cpu(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_scaled_dot_product_flash_attention_for_cpu", "NTTT", rets, query, key, value);
}
int opd_scaled_dot_product_flash_attention_for_cpu_backward(opd_tensor **rets, opd_tensor *grad_out, opd_tensor *query,
                                        opd_tensor *key, opd_tensor *value, opd_tensor *out, opd_tensor *logsumexp,
                                        double dropout_p, bool is_causal) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_scaled_dot_product_flash_attention_for_cpu_backward", "NTTTTTTdb", rets,
                             grad_out, query, key, value, out, logsumexp, dropout_p, is_causal);
}
int opd_lstm(opd_tensor **rets, opd_tensor *input, opd_tensors hx, opd_tensors params, bool has_biases,
             int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::lstm.input", "NTLLbidbbb", rets, input, hx, params, has_biases, num_layers,
                             dropout, train, bidirectional, batch_first);
}
int opd_gru(opd_tensor **rets, opd_tensor *input, opd_tensor *hx, opd_tensors params, bool has_biases,
            int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::gru.input", "NTTLbidbbb", rets, input, hx, params, has_biases, num_layers,
                             dropout, train, bidirectional, batch_first);
}
int opd_rnn_tanh(opd_tensor **rets, opd_tensor *input, opd_tensor *hx, opd_tensors params, bool has_biases,
                 int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::rnn_tanh.input", "NTTLbidbbb", rets, input, hx, params, has_biases, num_layers,
                             dropout, train, bidirectional, batch_first);
}
int opd_rnn_relu(opd_tensor **rets, opd_tensor *input, opd_tensor *hx, opd_tensors params, bool has_biases,
                 int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::rnn_relu.input", "NTTLbidbbb", rets, input, hx, params, has_biases, num_layers,
                             dropout, train, bidirectional, batch_first);
}
int opd__pack_padded_sequence(opd_tensor **rets, opd_tensor *input, opd_tensor *lengths, bool batch_first) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_pack_padded_sequence", "NTTb", rets, input, lengths, batch_first);
}
opd_tensor *opd__pack_padded_sequence_backward(opd_tensor *grad, opd_ints input_size, opd_tensor *batch_sizes,
                                        bool batch_first) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_pack_padded_sequence_backward", "TTITb", grad, input_size, batch_sizes,
                        batch_first);
}
opd_tensor *opd_pad_sequence(opd_tensors sequences) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pad_sequence", "TL", sequences);
}
opd_tensor *opd_pad_sequence_full(opd_tensors sequences, bool batch_first, double padding_value,
                                  const char *padding_side) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pad_sequence", "TLbds", sequences, batch_first, padding_value, padding_side);
}
int opd_lstm_data(opd_tensor **rets, opd_tensor *data, opd_tensor *batch_sizes, opd_tensors hx, opd_tensors params,
                  bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::lstm.data", "NTTLLbidbb", rets, data, batch_sizes, hx, params, has_biases,
                             num_layers, dropout, train, bidirectional);
}
int opd_lstm_cell(opd_tensor **rets, opd_tensor *input, opd_tensors hx, opd_tensor *w_ih, opd_tensor *w_hh) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::lstm_cell", "NTLTT", rets, input, hx, w_ih, w_hh);
}
int opd_lstm_cell_full(opd_tensor **rets, opd_tensor *input, opd_tensors hx, opd_tensor *w_ih, opd_tensor *w_hh,
                       opd_tensor *b_ih, opd_tensor *b_hh) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::lstm_cell", "NTLTTTT", rets, input, hx, w_ih, w_hh, b_ih, b_hh);
}
int opd_gru_data(opd_tensor **rets, opd_tensor *data, opd_tensor *batch_sizes, opd_tensor *hx, opd_tensors params,
                 bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::gru.data", "NTTTLbidbb", rets, data, batch_sizes, hx, params, has_biases,
                             num_layers, dropout, train, bidirectional);
}
opd_tensor *opd_gru_cell(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gru_cell", "TTTTT", input, hx, w_ih, w_hh);
}
opd_tensor *opd_gru_cell_full(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh, opd_tensor *b_ih,
                              opd_tensor *b_hh) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gru_cell", "TTTTTTT", input, hx, w_ih, w_hh, b_ih, b_hh);
}
int opd_rnn_tanh_data(opd_tensor **rets, opd_tensor *data, opd_tensor *batch_sizes, opd_tensor *hx, opd_tensors params,
                      bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::rnn_tanh.data", "NTTTLbidbb", rets, data, batch_sizes, hx, params, has_biases,
                             num_layers, dropout, train, bidirectional);
}
opd_tensor *opd_rnn_tanh_cell(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rnn_tanh_cell", "TTTTT", input, hx, w_ih, w_hh);
}
opd_tensor *opd_rnn_tanh_cell_full(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh,
                                   opd_tensor *b_ih, opd_tensor *b_hh) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rnn_tanh_cell", "TTTTTTT", input, hx, w_ih, w_hh, b_ih, b_hh);
}
int opd_rnn_relu_data(opd_tensor **rets, opd_tensor *data, opd_tensor *batch_sizes, opd_tensor *hx, opd_tensors params,
                      bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::rnn_relu.data", "NTTTLbidbb", rets, data, batch_sizes, hx, params, has_biases,
                             num_layers, dropout, train, bidirectional);
}
opd_tensor *opd_rnn_relu_cell(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rnn_relu_cell", "TTTTT", input, hx, w_ih, w_hh);
}
opd_tensor *opd_rnn_relu_cell_full(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh,
                                   opd_tensor *b_ih, opd_tensor *b_hh) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rnn_relu_cell", "TTTTTTT", input, hx, w_ih, w_hh, b_ih, b_hh);
}
int opd__native_multi_head_attention(opd_tensor **rets, opd_tensor *query, opd_tensor *key, opd_tensor *value,
                                     int64_t embed_dim, int64_t num_head, opd_tensor *qkv_weight, opd_tensor *qkv_bias,
                                     opd_tensor *proj_weight, opd_tensor *proj_bias) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_native_multi_head_attention", "NTTTiiTTTT", rets, query, key, value,
                             embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias);
}
int opd__native_multi_head_attention_full(opd_tensor **rets, opd_tensor *query, opd_tensor *key, opd_tensor *value,
                                        int64_t embed_dim, int64_t num_head, opd_tensor *qkv_weight,
                                        opd_tensor *qkv_bias, opd_tensor *proj_weight, opd_tensor *proj_bias,
                                        opd_tensor *mask, bool need_weights, bool average_attn_weights,
                                        opd_value mask_type) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_native_multi_head_attention", "NTTTiiTTTTTbbV", rets, query, key, value,
                             embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, need_weights,
                             average_attn_weights, mask_type);
}
opd_tensor *opd__transformer_encoder_layer_fwd(opd_tensor *src, int64_t embed_dim, int64_t num_heads,
                                        opd_tensor *qkv_weight, opd_tensor *qkv_bias, opd_tensor *proj_weight,
                                        opd_tensor *proj_bias, bool use_gelu, bool norm_first, double eps,
                                        opd_tensor *norm_weight_1, opd_tensor *norm_bias_1, opd_tensor *norm_weight_2,
                                        opd_tensor *norm_bias_2, opd_tensor *ffn_weight_1, opd_tensor *ffn_bias_1,
                                        opd_tensor *ffn_weight_2, opd_tensor *ffn_bias_2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_transformer_encoder_layer_fwd", "TTiiTTTTbbdTTTTTTTT", src, embed_dim, num_heads,
                        qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1,
                        norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2);
}
opd_tensor *opd__transformer_encoder_layer_fwd_full(opd_tensor *src, int64_t embed_dim, int64_t num_heads,
                                        opd_tensor *qkv_weight, opd_tensor *qkv_bias, opd_tensor *proj_weight,
                                        opd_tensor *proj_bias, bool use_gelu, bool norm_first, double eps,
                                        opd_tensor *norm_weight_1, opd_tensor *norm_bias_1, opd_tensor *norm_weight_2,
                                        opd_tensor *norm_bias_2, opd_tensor *ffn_weight_1, opd_tensor *ffn_bias_1,
                                        opd_tensor *ffn_weight_2, opd_tensor *ffn_bias_2, opd_tensor *mask,
                                        opd_value mask_type) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_transformer_encoder_layer_fwd", "TTiiTTTTbbdTTTTTTTTTV", src, embed_dim, num_heads,
                        qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1,
                        norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2,
                        mask, mask_type);
}
opd_tensor *opd_nll_loss(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nll_loss", "TTT", self, target);
}
opd_tensor *opd_nll_loss2d(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nll_loss2d", "TTT", self, target);
}
opd_tensor *opd_nll_loss_nd(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nll_loss_nd", "TTT", self, target);
}
opd_tensor *opd_nll_loss_nd_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight, int64_t reduction,
                                 int64_t ignore_index) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nll_loss_nd", "TTTTii", self, target, weight, reduction, ignore_index);
}
opd_tensor *opd_cross_entropy_loss_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight, int64_t reduction,
                                        int64_t ignore_index, double label_smoothing) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cross_entropy_loss", "TTTTiid", self, target, weight, reduction, ignore_index,
                        label_smoothing);
}
opd_tensor *opd_mse_loss(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::mse_loss", "TTT", self, target);
}
opd_tensor *opd_mse_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::mse_loss", "TTTi", self, target, reduction);
}
opd_tensor *opd_l1_loss(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::l1_loss", "TTT", self, target);
}
opd_tensor *opd_l1_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::l1_loss", "TTTi", self, target, reduction);
}
opd_tensor *opd_smooth_l1_loss(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::smooth_l1_loss", "TTT", self, target);
}
opd_tensor *opd_smooth_l1_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction, double beta) {
    static opd_op *op;
    return opd_given_op(&op, "aten::smooth_l1_loss", "TTTid", self, target, reduction, beta);
}
opd_tensor *opd_huber_loss(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::huber_loss", "TTT", self, target);
}
opd_tensor *opd_huber_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction, double delta) {
    static opd_op *op;
    return opd_given_op(&op, "aten::huber_loss", "TTTid", self, target, reduction, delta);
}
opd_tensor *opd_binary_cross_entropy(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::binary_cross_entropy", "TTT", self, target);
}
opd_tensor *opd_binary_cross_entropy_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight, int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::binary_cross_entropy", "TTTTi", self, target, weight, reduction);
}
opd_tensor *opd_binary_cross_entropy_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::binary_cross_entropy_backward", "TTTT", grad_output, self, target);
}
opd_tensor *opd_binary_cross_entropy_with_logits(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::binary_cross_entropy_with_logits", "TTT", self, target);
}
opd_tensor *opd_binary_cross_entropy_with_logits_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                                        opd_tensor *pos_weight, int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::binary_cross_entropy_with_logits", "TTTTTi", self, target, weight, pos_weight,
                        reduction);
}
opd_tensor *opd_soft_margin_loss(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::soft_margin_loss", "TTT", self, target);
}
opd_tensor *opd_soft_margin_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::soft_margin_loss", "TTTi", self, target, reduction);
}
opd_tensor *opd_kl_div(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::kl_div", "TTT", self, target);
}
opd_tensor *opd_kl_div_full(opd_tensor *self, opd_tensor *target, int64_t reduction, bool log_target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::kl_div", "TTTib", self, target, reduction, log_target);
}
opd_tensor *opd_hinge_embedding_loss(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hinge_embedding_loss", "TTT", self, target);
}
opd_tensor *opd_hinge_embedding_loss_full(opd_tensor *self, opd_tensor *target, double margin, int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hinge_embedding_loss", "TTTdi", self, target, margin, reduction);
}
opd_tensor *opd_margin_ranking_loss(opd_tensor *input1, opd_tensor *input2, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::margin_ranking_loss", "TTTT", input1, input2, target);
}
opd_tensor *opd_margin_ranking_loss_full(opd_tensor *input1, opd_tensor *input2, opd_tensor *target, double margin,
                                        int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::margin_ranking_loss", "TTTTdi", input1, input2, target, margin, reduction);
}
opd_tensor *opd_cosine_similarity(opd_tensor *x1, opd_tensor *x2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cosine_similarity", "TTT", x1, x2);
}
opd_tensor *opd_cosine_similarity_full(opd_tensor *x1, opd_tensor *x2, int64_t dim, double eps) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cosine_similarity", "TTTid", x1, x2, dim, eps);
}
opd_tensor *opd_cosine_embedding_loss(opd_tensor *input1, opd_tensor *input2, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cosine_embedding_loss", "TTTT", input1, input2, target);
}
opd_tensor *opd_cosine_embedding_loss_full(opd_tensor *input1, opd_tensor *input2, opd_tensor *target, double margin,
                                        int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cosine_embedding_loss", "TTTTdi", input1, input2, target, margin, reduction);
}
opd_tensor *opd_pairwise_distance(opd_tensor *x1, opd_tensor *x2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pairwise_distance", "TTT", x1, x2);
}
opd_tensor *opd_pairwise_distance_full(opd_tensor *x1, opd_tensor *x2, double p, double eps, bool keepdim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pairwise_distance", "TTTddb", x1, x2, p, eps, keepdim);
}
opd_tensor *opd_triplet_margin_loss(opd_tensor *anchor, opd_tensor *positive, opd_tensor *negative) {
    static opd_op *op;
    return opd_given_op(&op, "aten::triplet_margin_loss", "TTTT", anchor, positive, negative);
}
opd_tensor *opd_triplet_margin_loss_full(opd_tensor *anchor, opd_tensor *positive, opd_tensor *negative, double margin,
                                        double p, double eps, bool swap, int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::triplet_margin_loss", "TTTTdddbi", anchor, positive, negative, margin, p, eps, swap,
                        reduction);
}
opd_tensor *opd_poisson_nll_loss(opd_tensor *input, opd_tensor *target, bool log_input, bool full, double eps,
                                 int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::poisson_nll_loss", "TTTbbdi", input, target, log_input, full, eps, reduction);
}
opd_tensor *opd_glu(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::glu", "TT", self);
}
opd_tensor *opd_glu_full(opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::glu", "TTi", self, dim);
}
int opd_prelu_backward(opd_tensor **rets, opd_tensor *grad_output, opd_tensor *self, opd_tensor *weight) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::prelu_backward", "NTTT", rets, grad_output, self, weight);
}
opd_tensor *opd_multi_margin_loss(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multi_margin_loss", "TTT", self, target);
}
opd_tensor *opd_multi_margin_loss_full(opd_tensor *self, opd_tensor *target, opd_value p, opd_value margin,
                                       opd_tensor *weight, int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multi_margin_loss", "TTTVVTi", self, target, p, margin, weight, reduction);
}
opd_tensor *opd_multi_margin_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target, opd_value p,
                                        opd_value margin) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multi_margin_loss_backward", "TTTTVV", grad_output, self, target, p, margin);
}
opd_tensor *opd_multi_margin_loss_backward_full(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        opd_value p, opd_value margin, opd_tensor *weight, int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multi_margin_loss_backward", "TTTTVVTi", grad_output, self, target, p, margin,
                        weight, reduction);
}
opd_tensor *opd_multilabel_margin_loss(opd_tensor *self, opd_tensor *target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multilabel_margin_loss", "TTT", self, target);
}
opd_tensor *opd_multilabel_margin_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multilabel_margin_loss", "TTTi", self, target, reduction);
}
opd_tensor *opd_multilabel_margin_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        int64_t reduction, opd_tensor *is_target) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multilabel_margin_loss_backward", "TTTTiT", grad_output, self, target, reduction,
                        is_target);
}
opd_tensor *opd_rrelu(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rrelu", "TT", self);
}
opd_tensor *opd_rrelu_full(opd_tensor *self, opd_value lower, opd_value upper, bool training,
                           opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rrelu", "TTVVbG", self, lower, upper, training, generator);
}
opd_tensor *opd_rrelu_(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rrelu_", "TT", self);
}
opd_tensor *opd_rrelu_full_(opd_tensor *self, opd_value lower, opd_value upper, bool training,
                            opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rrelu_", "TTVVbG", self, lower, upper, training, generator);
}
int opd_rrelu_with_noise_functional(opd_tensor **rets, opd_tensor *self, opd_tensor *noise) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::rrelu_with_noise_functional", "NTT", rets, self, noise);
}
opd_tensor *opd_rrelu_with_noise(opd_tensor *self, opd_tensor *noise) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rrelu_with_noise", "TTT", self, noise);
}
opd_tensor *opd_rrelu_with_noise_full(opd_tensor *self, opd_tensor *noise, opd_value lower, opd_value upper,
                                      bool training, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rrelu_with_noise", "TTTVVbG", self, noise, lower, upper, training, generator);
}
opd_tensor *opd_rrelu_with_noise_out(opd_tensor *self, opd_tensor *noise, opd_value lower, opd_value upper,
                                     bool training, opd_generator *generator, opd_tensor *out) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rrelu_with_noise.out", "TTTVVbGT", self, noise, lower, upper, training, generator,
                        out);
}
opd_tensor *opd_rrelu_with_noise_(opd_tensor *self, opd_tensor *noise) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rrelu_with_noise_", "TTT", self, noise);
}
opd_tensor *opd_rrelu_with_noise_full_(opd_tensor *self, opd_tensor *noise, opd_value lower, opd_value upper,
                                       bool training, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rrelu_with_noise_", "TTTVVbG", self, noise, lower, upper, training, generator);
}
opd_tensor *opd_rrelu_with_noise_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *noise, opd_value lower,
                                        opd_value upper, bool training, bool self_is_result) {
    static opd_op *op;
    return opd_given_op(&op, "aten::rrelu_with_noise_backward", "TTTTVVbb", grad_output, self, noise, lower, upper,
                        training, self_is_result);
}
int opd__ctc_loss(opd_tensor **rets, opd_tensor *log_probs, opd_tensor *targets, opd_ints input_lengths,
                  opd_ints target_lengths) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_ctc_loss", "NTTII", rets, log_probs, targets, input_lengths, target_lengths);
}
int opd__ctc_loss_full(opd_tensor **rets, opd_tensor *log_probs, opd_tensor *targets, opd_ints input_lengths,
                       opd_ints target_lengths, int64_t blank, bool zero_infinity) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_ctc_loss", "NTTIIib", rets, log_probs, targets, input_lengths, target_lengths,
                             blank, zero_infinity);
}
opd_tensor *opd__ctc_loss_backward(opd_tensor *grad, opd_tensor *log_probs, opd_tensor *targets, opd_ints input_lengths,
                                   opd_ints target_lengths, opd_tensor *neg_log_likelihood, opd_tensor *log_alpha,
                                   int64_t blank) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_ctc_loss_backward", "TTTTIITTi", grad, log_probs, targets, input_lengths,
                        target_lengths, neg_log_likelihood, log_alpha, blank);
}
opd_tensor *opd__ctc_loss_backward_full(opd_tensor *grad, opd_tensor *log_probs, opd_tensor *targets,
                                        opd_ints input_lengths, opd_ints target_lengths, opd_tensor *neg_log_likelihood,
                                        opd_tensor *log_alpha, int64_t blank, bool zero_infinity) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_ctc_loss_backward", "TTTTIITTib", grad, log_probs, targets, input_lengths,
                        target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity);
}
opd_tensor *opd_ctc_loss_Tensor(opd_tensor *log_probs, opd_tensor *targets, opd_tensor *input_lengths,
                                opd_tensor *target_lengths) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ctc_loss.Tensor", "TTTTT", log_probs, targets, input_lengths, target_lengths);
}
opd_tensor *opd_ctc_loss_Tensor_full(opd_tensor *log_probs, opd_tensor *targets, opd_tensor *input_lengths,
                                     opd_tensor *target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ctc_loss.Tensor", "TTTTTiib", log_probs, targets, input_lengths, target_lengths,
                        blank, reduction, zero_infinity);
}
opd_tensor *opd_ctc_loss_IntList(opd_tensor *log_probs, opd_tensor *targets, opd_ints input_lengths,
                                 opd_ints target_lengths) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ctc_loss.IntList", "TTTII", log_probs, targets, input_lengths, target_lengths);
}
opd_tensor *opd_ctc_loss_IntList_full(opd_tensor *log_probs, opd_tensor *targets, opd_ints input_lengths,
                                      opd_ints target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
    static opd_op *op;
    return opd_given_op(&op, "aten::ctc_loss.IntList", "TTTIIiib", log_probs, targets, input_lengths, target_lengths,
                        blank, reduction, zero_infinity);
}
int opd__ctc_loss_Tensor(opd_tensor **rets, opd_tensor *log_probs, opd_tensor *targets, opd_tensor *input_lengths,
                         opd_tensor *target_lengths) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_ctc_loss.Tensor", "NTTTT", rets, log_probs, targets, input_lengths,
                             target_lengths);
}
int opd__ctc_loss_Tensor_full(opd_tensor **rets, opd_tensor *log_probs, opd_tensor *targets, opd_tensor *input_lengths,
                              opd_tensor *target_lengths, int64_t blank, bool zero_infinity) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_ctc_loss.Tensor", "NTTTTib", rets, log_probs, targets, input_lengths,
                             target_lengths, blank, zero_infinity);
}
opd_tensor *opd__ctc_loss_backward_Tensor(opd_tensor *grad, opd_tensor *log_probs, opd_tensor *targets,
                                        opd_tensor *input_lengths, opd_tensor *target_lengths,
                                        opd_tensor *neg_log_likelihood, opd_tensor *log_alpha, int64_t blank) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_ctc_loss_backward.Tensor", "TTTTTTTTi", grad, log_probs, targets, input_lengths,
                        target_lengths, neg_log_likelihood, log_alpha, blank);
}
opd_tensor *opd__ctc_loss_backward_Tensor_full(opd_tensor *grad, opd_tensor *log_probs, opd_tensor *targets,
                                        opd_tensor *input_lengths, opd_tensor *target_lengths,
                                        opd_tensor *neg_log_likelihood, opd_tensor *log_alpha, int64_t blank,
                                        bool zero_infinity) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_ctc_loss_backward.Tensor", "TTTTTTTTib", grad, log_probs, targets, input_lengths,
                        target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity);
}
opd_tensor *opd_gather_full(opd_tensor *self, int64_t dim, opd_tensor *index, bool sparse_grad) {
    static opd_op *op;
    return opd_given_op(&op, "aten::gather", "TTiTb", self, dim, index, sparse_grad);
}
opd_tensor *opd_scatter_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scatter_.src", "TTiTT", self, dim, index, src);
}
opd_tensor *opd_scatter_value_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scatter_.value", "TTiTV", self, dim, index, value);
}
opd_tensor *opd_scatter_reduce(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src, const char *reduce) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scatter.reduce", "TTiTTs", self, dim, index, src, reduce);
}
opd_tensor *opd_scatter_reduce_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src, const char *reduce) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scatter_.reduce", "TTiTTs", self, dim, index, src, reduce);
}
opd_tensor *opd_scatter_value_reduce(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value,
                                     const char *reduce) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scatter.value_reduce", "TTiTVs", self, dim, index, value, reduce);
}
opd_tensor *opd_scatter_value_reduce_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value,
                                      const char *reduce) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scatter_.value_reduce", "TTiTVs", self, dim, index, value, reduce);
}
opd_tensor *opd_scatter_add_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scatter_add_", "TTiTT", self, dim, index, src);
}
opd_tensor *opd_scatter_reduce_two_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src,
                                    const char *reduce) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scatter_reduce_.two", "TTiTTs", self, dim, index, src, reduce);
}
opd_tensor *opd_scatter_reduce_two_full_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src,
                                        const char *reduce, bool include_self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::scatter_reduce_.two", "TTiTTsb", self, dim, index, src, reduce, include_self);
}
opd_tensor *opd_index_add_full(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_add", "TTiTTV", self, dim, index, source, alpha);
}
opd_tensor *opd_index_add_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_add_", "TTiTT", self, dim, index, source);
}
opd_tensor *opd_index_add_full_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source, opd_value alpha) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_add_", "TTiTTV", self, dim, index, source, alpha);
}
opd_tensor *opd_index_copy(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_copy", "TTiTT", self, dim, index, source);
}
opd_tensor *opd_index_copy_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_copy_", "TTiTT", self, dim, index, source);
}
opd_tensor *opd_index_fill_int_Scalar_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_fill_.int_Scalar", "TTiTV", self, dim, index, value);
}
opd_tensor *opd_index_fill_int_Tensor(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_fill.int_Tensor", "TTiTT", self, dim, index, value);
}
opd_tensor *opd_index_fill_int_Tensor_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_fill_.int_Tensor", "TTiTT", self, dim, index, value);
}
opd_tensor *opd_index_reduce_full(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source,
                                  const char *reduce, bool include_self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_reduce", "TTiTTsb", self, dim, index, source, reduce, include_self);
}
opd_tensor *opd_index_reduce_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source,
                              const char *reduce) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_reduce_", "TTiTTs", self, dim, index, source, reduce);
}
opd_tensor *opd_index_reduce_full_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source,
                                   const char *reduce, bool include_self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_reduce_", "TTiTTsb", self, dim, index, source, reduce, include_self);
}
opd_tensor *opd_index_put_(opd_tensor *self, opd_tensors indices, opd_tensor *values) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_put_", "TTLT", self, indices, values);
}
opd_tensor *opd_index_put_full_(opd_tensor *self, opd_tensors indices, opd_tensor *values, bool accumulate) {
    static opd_op *op;
    return opd_given_op(&op, "aten::index_put_", "TTLTb", self, indices, values, accumulate);
}
opd_tensor *opd__unsafe_index_Tensor(opd_tensor *self, opd_tensors indices) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_unsafe_index.Tensor", "TTL", self, indices);
}
opd_tensor *opd__unsafe_index_put(opd_tensor *self, opd_tensors indices, opd_tensor *values) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_unsafe_index_put", "TTLT", self, indices, values);
}
opd_tensor *opd__unsafe_index_put_full(opd_tensor *self, opd_tensors indices, opd_tensor *values, bool accumulate) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_unsafe_index_put", "TTLTb", self, indices, values, accumulate);
}
opd_tensor *opd__unsafe_masked_index(opd_tensor *self, opd_tensor *mask, opd_tensors indices, opd_value fill) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_unsafe_masked_index", "TTTLV", self, mask, indices, fill);
}
opd_tensor *opd__unsafe_masked_index_put_accumulate(opd_tensor *self, opd_tensor *mask, opd_tensors indices,
                                        opd_tensor *values) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_unsafe_masked_index_put_accumulate", "TTTLT", self, mask, indices, values);
}
opd_tensor *opd__index_put_impl_(opd_tensor *self, opd_tensors indices, opd_tensor *values) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_index_put_impl_", "TTLT", self, indices, values);
}
opd_tensor *opd__index_put_impl_full_(opd_tensor *self, opd_tensors indices, opd_tensor *values, bool accumulate,
                                      bool unsafe) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_index_put_impl_", "TTLTbb", self, indices, values, accumulate, unsafe);
}
opd_tensor *opd_put(opd_tensor *self, opd_tensor *index, opd_tensor *source) {
    static opd_op *op;
    return opd_given_op(&op, "aten::put", "TTTT", self, index, source);
}
opd_tensor *opd_put_(opd_tensor *self, opd_tensor *index, opd_tensor *source) {
    static opd_op *op;
    return opd_given_op(&op, "aten::put_", "TTTT", self, index, source);
}
opd_tensor *opd_put_full_(opd_tensor *self, opd_tensor *index, opd_tensor *source, bool accumulate) {
    static opd_op *op;
    return opd_given_op(&op, "aten::put_", "TTTTb", self, index, source, accumulate);
}
opd_tensor *opd_take_along_dim(opd_tensor *self, opd_tensor *indices) {
    static opd_op *op;
    return opd_given_op(&op, "aten::take_along_dim", "TTT", self, indices);
}
opd_tensor *opd_take_along_dim_full(opd_tensor *self, opd_tensor *indices, opd_value dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::take_along_dim", "TTTV", self, indices, dim);
}
opd_tensor *opd_masked_scatter_(opd_tensor *self, opd_tensor *mask, opd_tensor *source) {
    static opd_op *op;
    return opd_given_op(&op, "aten::masked_scatter_", "TTTT", self, mask, source);
}
opd_tensor *opd_where_Scalar(opd_tensor *condition, opd_value self, opd_value other) {
    static opd_op *op;
    return opd_given_op(&op, "aten::where.Scalar", "TTVV", condition, self, other);
}
opd_tensors opd_where(opd_tensor *condition) {
    static opd_op *op;
    return opd_given_list(&op, "aten::where", "LT", condition);
}
opd_tensor *opd_hstack(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hstack", "TL", tensors);
}
opd_tensor *opd_vstack(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::vstack", "TL", tensors);
}
opd_tensor *opd_dstack(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::dstack", "TL", tensors);
}
opd_tensor *opd_column_stack(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::column_stack", "TL", tensors);
}
opd_tensor *opd_row_stack(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::row_stack", "TL", tensors);
}
opd_tensor *opd_concat(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::concat", "TL", tensors);
}
opd_tensor *opd_concat_full(opd_tensors tensors, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::concat", "TLi", tensors, dim);
}
opd_tensor *opd_concatenate(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::concatenate", "TL", tensors);
}
opd_tensor *opd_concatenate_full(opd_tensors tensors, int64_t dim) {
    static opd_op *op;
    return opd_given_op(&op, "aten::concatenate", "TLi", tensors, dim);
}
opd_tensor *opd__chunk_cat(opd_tensors tensors, int64_t dim, int64_t num_chunks) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_chunk_cat", "TLii", tensors, dim, num_chunks);
}
opd_tensor *opd_reflection_pad1d(opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::reflection_pad1d", "TTI", self, padding);
}
opd_tensor *opd_reflection_pad1d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::reflection_pad1d_backward", "TTTI", grad_output, self, padding);
}
opd_tensor *opd_reflection_pad2d(opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::reflection_pad2d", "TTI", self, padding);
}
opd_tensor *opd_reflection_pad2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::reflection_pad2d_backward", "TTTI", grad_output, self, padding);
}
opd_tensor *opd_reflection_pad3d(opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::reflection_pad3d", "TTI", self, padding);
}
opd_tensor *opd_reflection_pad3d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::reflection_pad3d_backward", "TTTI", grad_output, self, padding);
}
opd_tensor *opd_replication_pad1d(opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::replication_pad1d", "TTI", self, padding);
}
opd_tensor *opd_replication_pad1d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::replication_pad1d_backward", "TTTI", grad_output, self, padding);
}
opd_tensor *opd_replication_pad2d(opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::replication_pad2d", "TTI", self, padding);
}
opd_tensor *opd_replication_pad2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::replication_pad2d_backward", "TTTI", grad_output, self, padding);
}
opd_tensor *opd_replication_pad3d(opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::replication_pad3d", "TTI", self, padding);
}
opd_tensor *opd_replication_pad3d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding) {
    static opd_op *op;
    return opd_given_op(&op, "aten::replication_pad3d_backward", "TTTI", grad_output, self, padding);
}
opd_tensor *opd_pad(opd_tensor *self, opd_ints pad) {
    static opd_op *op;
    return opd_given_op(&op, "aten::pad", "TTI", self, pad);
}
opd_tensor *opd__pad_circular(opd_tensor *self, opd_ints pad) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_pad_circular", "TTI", self, pad);
}
opd_tensor *opd_embedding_full(opd_tensor *weight, opd_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq,
                               bool sparse) {
    static opd_op *op;
    return opd_given_op(&op, "aten::embedding", "TTTibb", weight, indices, padding_idx, scale_grad_by_freq, sparse);
}
opd_tensor *opd_embedding_renorm(opd_tensor *self, opd_tensor *indices, double max_norm, double norm_type) {
    static opd_op *op;
    return opd_given_op(&op, "aten::embedding_renorm", "TTTdd", self, indices, max_norm, norm_type);
}
opd_tensor *opd_embedding_renorm_(opd_tensor *self, opd_tensor *indices, double max_norm, double norm_type) {
    static opd_op *op;
    return opd_given_op(&op, "aten::embedding_renorm_", "TTTdd", self, indices, max_norm, norm_type);
}
opd_tensor *opd_embedding_backward(opd_tensor *grad, opd_tensor *indices, int64_t num_weights, int64_t padding_idx,
                                   bool scale_grad_by_freq, bool sparse) {
    static opd_op *op;
    return opd_given_op(&op, "aten::embedding_backward", "TTTiibb", grad, indices, num_weights, padding_idx,
                        scale_grad_by_freq, sparse);
}
int opd_under_embedding_bag(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices, opd_tensor *offsets) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_embedding_bag", "NTTT", rets, weight, indices, offsets);
}
int opd_under_embedding_bag_full(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices, opd_tensor *offsets,
                                 bool scale_grad_by_freq, int64_t mode, bool sparse, opd_tensor *per_sample_weights,
                                 bool include_last_offset, int64_t padding_idx) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_embedding_bag", "NTTTbibTbi", rets, weight, indices, offsets,
                             scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx);
}
int opd_embedding_bag_forward_only(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices, opd_tensor *offsets) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_embedding_bag_forward_only", "NTTT", rets, weight, indices, offsets);
}
int opd_embedding_bag_forward_only_full(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices, opd_tensor *offsets,
                                        bool scale_grad_by_freq, int64_t mode, bool sparse,
                                        opd_tensor *per_sample_weights, bool include_last_offset, int64_t padding_idx) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_embedding_bag_forward_only", "NTTTbibTbi", rets, weight, indices, offsets,
                             scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx);
}
int opd_embedding_bag(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices, opd_tensor *offsets) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::embedding_bag", "NTTT", rets, weight, indices, offsets);
}
int opd_embedding_bag_padding_idx(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices, opd_tensor *offsets,
                                  bool scale_grad_by_freq, int64_t mode, bool sparse, opd_tensor *per_sample_weights,
                                  bool include_last_offset, opd_value padding_idx) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::embedding_bag.padding_idx", "NTTTbibTbV", rets, weight, indices, offsets,
                             scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx);
}
opd_tensor *opd_embedding_bag_backward(opd_tensor *grad, opd_tensor *indices, opd_tensor *offsets,
                                       opd_tensor *offset2bag, opd_tensor *bag_size, opd_tensor *maximum_indices,
                                       int64_t num_weights, bool scale_grad_by_freq, int64_t mode, bool sparse,
                                       opd_tensor *per_sample_weights) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_embedding_bag_backward", "TTTTTTTibibT", grad, indices, offsets, offset2bag,
                        bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, sparse, per_sample_weights);
}
opd_tensor *opd_embedding_bag_dense_backward(opd_tensor *grad, opd_tensor *indices, opd_tensor *offset2bag,
                                        opd_tensor *bag_size, opd_tensor *maximum_indices, int64_t num_weights,
                                        bool scale_grad_by_freq, int64_t mode, opd_tensor *per_sample_weights) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_embedding_bag_dense_backward", "TTTTTTibiT", grad, indices, offset2bag, bag_size,
                        maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights);
}
opd_tensor *opd_embedding_bag_per_sample_weights_backward(opd_tensor *grad, opd_tensor *weight, opd_tensor *indices,
                                        opd_tensor *offsets, opd_tensor *offset2bag, int64_t mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_embedding_bag_per_sample_weights_backward", "TTTTTTi", grad, weight, indices,
                        offsets, offset2bag, mode);
}
opd_tensor *opd_one_hot(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::one_hot", "TT", self);
}
opd_tensor *opd_bincount(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bincount", "TT", self);
}
opd_tensor *opd_bincount_full(opd_tensor *self, opd_tensor *weights, int64_t minlength) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bincount", "TTTi", self, weights, minlength);
}
opd_tensor *opd_histc(opd_tensor *self, int64_t bins) {
    static opd_op *op;
    return opd_given_op(&op, "aten::histc", "TTi", self, bins);
}
opd_tensor *opd_histc_full(opd_tensor *self, int64_t bins, opd_value min, opd_value max) {
    static opd_op *op;
    return opd_given_op(&op, "aten::histc", "TTiVV", self, bins, min, max);
}
int opd_unique2(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_unique2", "NT", rets, self);
}
int opd_unique2_full(opd_tensor **rets, opd_tensor *self, bool sorted, bool return_inverse, bool return_counts) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::_unique2", "NTbbb", rets, self, sorted, return_inverse, return_counts);
}
int opd_unique_dim(opd_tensor **rets, opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::unique_dim", "NTi", rets, self, dim);
}
int opd_unique_dim_full(opd_tensor **rets, opd_tensor *self, int64_t dim, bool sorted, bool return_inverse,
                        bool return_counts) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::unique_dim", "NTibbb", rets, self, dim, sorted, return_inverse, return_counts);
}
int opd_unique_consecutive(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::unique_consecutive", "NT", rets, self);
}
int opd_unique_consecutive_full(opd_tensor **rets, opd_tensor *self, bool return_inverse, bool return_counts,
                                opd_value dim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::unique_consecutive", "NTbbV", rets, self, return_inverse, return_counts, dim);
}
int opd_unique_dim_consecutive(opd_tensor **rets, opd_tensor *self, int64_t dim) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::unique_dim_consecutive", "NTi", rets, self, dim);
}
int opd_unique_dim_consecutive_full(opd_tensor **rets, opd_tensor *self, int64_t dim, bool return_inverse,
                                    bool return_counts) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::unique_dim_consecutive", "NTibb", rets, self, dim, return_inverse,
                             return_counts);
}
opd_tensor *opd_multinomial(opd_tensor *self, int64_t num_samples) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multinomial", "TTi", self, num_samples);
}
opd_tensor *opd_multinomial_full(opd_tensor *self, int64_t num_samples, bool replacement, opd_generator *generator) {
    static opd_op *op;
    return opd_given_op(&op, "aten::multinomial", "TTibG", self, num_samples, replacement, generator);
}
opd_tensor *opd_slice_scatter(opd_tensor *self, opd_tensor *src) {
    static opd_op *op;
    return opd_given_op(&op, "aten::slice_scatter", "TTT", self, src);
}
opd_tensor *opd_slice_scatter_full(opd_tensor *self, opd_tensor *src, int64_t dim, opd_value start, opd_value end,
                                   int64_t step) {
    static opd_op *op;
    return opd_given_op(&op, "aten::slice_scatter", "TTTiVVi", self, src, dim, start, end, step);
}
opd_tensor *opd_select_scatter(opd_tensor *self, opd_tensor *src, int64_t dim, int64_t index) {
    static opd_op *op;
    return opd_given_op(&op, "aten::select_scatter", "TTTii", self, src, dim, index);
}
opd_tensor *opd_diagonal_scatter(opd_tensor *self, opd_tensor *src) {
    static opd_op *op;
    return opd_given_op(&op, "aten::diagonal_scatter", "TTT", self, src);
}
opd_tensor *opd_diagonal_scatter_full(opd_tensor *self, opd_tensor *src, int64_t offset, int64_t dim1, int64_t dim2) {
    static opd_op *op;
    return opd_given_op(&op, "aten::diagonal_scatter", "TTTiii", self, src, offset, dim1, dim2);
}
opd_tensor *opd_fill_diagonal_(opd_tensor *self, opd_value fill_value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fill_diagonal_", "TTV", self, fill_value);
}
opd_tensor *opd_fill_diagonal_full_(opd_tensor *self, opd_value fill_value, bool wrap) {
    static opd_op *op;
    return opd_given_op(&op, "aten::fill_diagonal_", "TTVb", self, fill_value, wrap);
}
opd_tensor *opd_as_strided_scatter(opd_tensor *self, opd_tensor *src, opd_ints size, opd_ints stride) {
    static opd_op *op;
    return opd_given_op(&op, "aten::as_strided_scatter", "TTTII", self, src, size, stride);
}
opd_tensor *opd_repeat_interleave_Tensor(opd_tensor *repeats) {
    static opd_op *op;
    return opd_given_op(&op, "aten::repeat_interleave.Tensor", "TT", repeats);
}
opd_tensor *opd_repeat_interleave_Tensor_full(opd_tensor *repeats, opd_value output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::repeat_interleave.Tensor", "TTV", repeats, output_size);
}
opd_tensor *opd_repeat_interleave_self_Tensor(opd_tensor *self, opd_tensor *repeats) {
    static opd_op *op;
    return opd_given_op(&op, "aten::repeat_interleave.self_Tensor", "TTT", self, repeats);
}
opd_tensor *opd_repeat_interleave_self_Tensor_full(opd_tensor *self, opd_tensor *repeats, opd_value dim,
                                        opd_value output_size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::repeat_interleave.self_Tensor", "TTTVV", self, repeats, dim, output_size);
}
opd_tensor *opd_repeat_interleave(opd_tensor *self, int64_t repeats) {
    static opd_op *op;
    return opd_given_op(&op, "aten::repeat_interleave.self_int", "TTi", self, repeats);
}
opd_tensor *opd_searchsorted_Scalar(opd_tensor *sorted_sequence, opd_value self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::searchsorted.Scalar", "TTV", sorted_sequence, self);
}
opd_tensor *opd_searchsorted_Scalar_full(opd_tensor *sorted_sequence, opd_value self, bool out_int32, bool right,
                                        const char *side, opd_tensor *sorter) {
    static opd_op *op;
    return opd_given_op(&op, "aten::searchsorted.Scalar", "TTVbbsT", sorted_sequence, self, out_int32, right, side,
                        sorter);
}
opd_tensor *opd_bucketize(opd_tensor *self, opd_tensor *boundaries) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bucketize.Tensor", "TTT", self, boundaries);
}
opd_tensor *opd_bucketize_full(opd_tensor *self, opd_tensor *boundaries, bool out_int32, bool right) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bucketize.Tensor", "TTTbb", self, boundaries, out_int32, right);
}
opd_tensor *opd_bucketize_Scalar(opd_value self, opd_tensor *boundaries) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bucketize.Scalar", "TVT", self, boundaries);
}
opd_tensor *opd_bucketize_Scalar_full(opd_value self, opd_tensor *boundaries, bool out_int32, bool right) {
    static opd_op *op;
    return opd_given_op(&op, "aten::bucketize.Scalar", "TVTbb", self, boundaries, out_int32, right);
}
opd_tensor *opd_block_diag(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::block_diag", "TL", tensors);
}
opd_tensor *opd_segment_reduce(opd_tensor *data, const char *reduce) {
    static opd_op *op;
    return opd_given_op(&op, "aten::segment_reduce", "TTs", data, reduce);
}
opd_tensor *opd_segment_reduce_full(opd_tensor *data, const char *reduce, opd_tensor *lengths, opd_tensor *indices,
                                    opd_tensor *offsets, int64_t axis, bool unsafe, opd_value initial) {
    static opd_op *op;
    return opd_given_op(&op, "aten::segment_reduce", "TTsTTTibV", data, reduce, lengths, indices, offsets, axis, unsafe,
                        initial);
}
opd_tensor *opd__segment_reduce_backward(opd_tensor *grad, opd_tensor *output, opd_tensor *data, const char *reduce) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_segment_reduce_backward", "TTTTs", grad, output, data, reduce);
}
opd_tensor *opd__segment_reduce_backward_full(opd_tensor *grad, opd_tensor *output, opd_tensor *data,
                                        const char *reduce, opd_tensor *lengths, opd_tensor *offsets, int64_t axis,
                                        opd_value initial) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_segment_reduce_backward", "TTTTsTTiV", grad, output, data, reduce, lengths,
                        offsets, axis, initial);
}
opd_tensor *opd_isin_Tensor_Tensor(opd_tensor *elements, opd_tensor *test_elements) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isin.Tensor_Tensor", "TTT", elements, test_elements);
}
opd_tensor *opd_isin_Tensor_Tensor_full(opd_tensor *elements, opd_tensor *test_elements, bool assume_unique,
                                        bool invert) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isin.Tensor_Tensor", "TTTbb", elements, test_elements, assume_unique, invert);
}
opd_tensor *opd_isin_Tensor_Scalar(opd_tensor *elements, opd_value test_element) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isin.Tensor_Scalar", "TTV", elements, test_element);
}
opd_tensor *opd_isin_Tensor_Scalar_full(opd_tensor *elements, opd_value test_element, bool assume_unique, bool invert) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isin.Tensor_Scalar", "TTVbb", elements, test_element, assume_unique, invert);
}
opd_tensor *opd_isin_Scalar_Tensor(opd_value element, opd_tensor *test_elements) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isin.Scalar_Tensor", "TVT", element, test_elements);
}
opd_tensor *opd_isin_Scalar_Tensor_full(opd_value element, opd_tensor *test_elements, bool assume_unique, bool invert) {
    static opd_op *op;
    return opd_given_op(&op, "aten::isin.Scalar_Tensor", "TVTbb", element, test_elements, assume_unique, invert);
}
opd_tensor *opd_argwhere(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::argwhere", "TT", self);
}
opd_tensor *opd_hash_tensor(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hash_tensor", "TT", self);
}
opd_tensor *opd_hash_tensor_full(opd_tensor *self, opd_ints dim, bool keepdim, int64_t mode) {
    static opd_op *op;
    return opd_given_op(&op, "aten::hash_tensor", "TTIbi", self, dim, keepdim, mode);
}
opd_tensor *opd__is_all_true(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_is_all_true", "TT", self);
}
opd_tensor *opd__is_any_true(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_is_any_true", "TT", self);
}
opd_tensors opd_nonzero_numpy(opd_tensor *self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::nonzero_numpy", "LT", self);
}
opd_tensor *opd_nonzero_static(opd_tensor *self, int64_t size) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nonzero_static", "TTi", self, size);
}
opd_tensor *opd_nonzero_static_full(opd_tensor *self, int64_t size, int64_t fill_value) {
    static opd_op *op;
    return opd_given_op(&op, "aten::nonzero_static", "TTii", self, size, fill_value);
}
opd_tensor *opd_combinations(opd_tensor *self) {
    static opd_op *op;
    return opd_given_op(&op, "aten::combinations", "TT", self);
}
opd_tensor *opd_combinations_full(opd_tensor *self, int64_t r, bool with_replacement) {
    static opd_op *op;
    return opd_given_op(&op, "aten::combinations", "TTib", self, r, with_replacement);
}
opd_tensor *opd_cartesian_prod(opd_tensors tensors) {
    static opd_op *op;
    return opd_given_op(&op, "aten::cartesian_prod", "TL", tensors);
}
opd_tensors opd__histogramdd_bin_edges(opd_tensor *self, opd_ints bins) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_histogramdd_bin_edges", "LTI", self, bins);
}
opd_tensors opd__histogramdd_bin_edges_full(opd_tensor *self, opd_ints bins, opd_value range, opd_tensor *weight,
                                        bool density) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_histogramdd_bin_edges", "LTIVTb", self, bins, range, weight, density);
}
opd_tensor *opd__histogramdd_from_bin_cts(opd_tensor *self, opd_ints bins) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_histogramdd_from_bin_cts", "TTI", self, bins);
}
opd_tensor *opd__histogramdd_from_bin_cts_full(opd_tensor *self, opd_ints bins, opd_value range, opd_tensor *weight,
                                        bool density) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_histogramdd_from_bin_cts", "TTIVTb", self, bins, range, weight, density);
}
opd_tensor *opd__histogramdd_from_bin_tensors(opd_tensor *self, opd_tensors bins) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_histogramdd_from_bin_tensors", "TTL", self, bins);
}
opd_tensor *opd__histogramdd_from_bin_tensors_full(opd_tensor *self, opd_tensors bins, opd_tensor *weight,
                                        bool density) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_histogramdd_from_bin_tensors", "TTLTb", self, bins, weight, density);
}
int opd_histogram_bins_tensor(opd_tensor **rets, opd_tensor *self, opd_tensor *bins) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::histogram.bins_tensor", "NTT", rets, self, bins);
}
int opd_histogram_bins_tensor_full(opd_tensor **rets, opd_tensor *self, opd_tensor *bins, opd_tensor *weight,
                                   bool density) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::histogram.bins_tensor", "NTTTb", rets, self, bins, weight, density);
}
int opd_histogram_bin_ct(opd_tensor **rets, opd_tensor *self) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::histogram.bin_ct", "NT", rets, self);
}
int opd_histogram_bin_ct_full(opd_tensor **rets, opd_tensor *self, int64_t bins, opd_value range, opd_tensor *weight,
                              bool density) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::histogram.bin_ct", "NTiVTb", rets, self, bins, range, weight, density);
}
int opd_histogramdd(opd_tensor **rets, opd_tensor *self, opd_ints bins) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::histogramdd", "NTI", rets, self, bins);
}
int opd_histogramdd_full(opd_tensor **rets, opd_tensor *self, opd_ints bins, opd_value range, opd_tensor *weight,
                         bool density) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::histogramdd", "NTIVTb", rets, self, bins, range, weight, density);
}
int opd_histogramdd_int_bins(opd_tensor **rets, opd_tensor *self, int64_t bins) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::histogramdd.int_bins", "NTi", rets, self, bins);
}
int opd_histogramdd_int_bins_full(opd_tensor **rets, opd_tensor *self, int64_t bins, opd_value range,
                                  opd_tensor *weight, bool density) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::histogramdd.int_bins", "NTiVTb", rets, self, bins, range, weight, density);
}
int opd_histogramdd_TensorList_bins(opd_tensor **rets, opd_tensor *self, opd_tensors bins) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::histogramdd.TensorList_bins", "NTL", rets, self, bins);
}
int opd_histogramdd_TensorList_bins_full(opd_tensor **rets, opd_tensor *self, opd_tensors bins, opd_value range,
                                        opd_tensor *weight, bool density) {
    static opd_op *op;
    return opd_given_tensors(&op, "aten::histogramdd.TensorList_bins", "NTLVTb", rets, self, bins, range, weight,
                             density);
}
int opd_fused_sgd_(opd_tensors self, opd_tensors grads, opd_tensors momentum_buffer_list, double weight_decay,
                   double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_sgd_", "vLLLddddbbb", self, grads, momentum_buffer_list, weight_decay,
                         momentum, lr, dampening, nesterov, maximize, is_first_step);
}
int opd_fused_sgd_full_(opd_tensors self, opd_tensors grads, opd_tensors momentum_buffer_list, double weight_decay,
                        double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
                        opd_tensor *grad_scale, opd_tensor *found_inf) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_sgd_", "vLLLddddbbbTT", self, grads, momentum_buffer_list, weight_decay,
                         momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf);
}
int opd_fused_sgd_tensor_lr_(opd_tensors self, opd_tensors grads, opd_tensors momentum_buffer_list, double weight_decay,
                             double momentum, opd_tensor *lr, double dampening, bool nesterov, bool maximize,
                             bool is_first_step) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_sgd_.tensor_lr", "vLLLddTdbbb", self, grads, momentum_buffer_list,
                         weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step);
}
int opd_fused_sgd_tensor_lr_full_(opd_tensors self, opd_tensors grads, opd_tensors momentum_buffer_list,
                                  double weight_decay, double momentum, opd_tensor *lr, double dampening, bool nesterov,
                                  bool maximize, bool is_first_step, opd_tensor *grad_scale, opd_tensor *found_inf) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_sgd_.tensor_lr", "vLLLddTdbbbTT", self, grads, momentum_buffer_list,
                         weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale,
                         found_inf);
}
int opd_fused_adam_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                    opd_tensors max_exp_avg_sqs, opd_tensors state_steps, double lr, double beta1, double beta2,
                    double weight_decay, double eps, bool amsgrad, bool maximize) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_adam_", "vLLLLLLdddddbb", self, grads, exp_avgs, exp_avg_sqs,
                         max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize);
}
int opd_fused_adam_full_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                         opd_tensors max_exp_avg_sqs, opd_tensors state_steps, double lr, double beta1, double beta2,
                         double weight_decay, double eps, bool amsgrad, bool maximize, opd_tensor *grad_scale,
                         opd_tensor *found_inf) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_adam_", "vLLLLLLdddddbbTT", self, grads, exp_avgs, exp_avg_sqs,
                         max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
                         grad_scale, found_inf);
}
int opd_fused_adam_tensor_lr_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                              opd_tensors max_exp_avg_sqs, opd_tensors state_steps, opd_tensor *lr, double beta1,
                              double beta2, double weight_decay, double eps, bool amsgrad, bool maximize) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_adam_.tensor_lr", "vLLLLLLTddddbb", self, grads, exp_avgs, exp_avg_sqs,
                         max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize);
}
int opd_fused_adam_tensor_lr_full_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                                   opd_tensors max_exp_avg_sqs, opd_tensors state_steps, opd_tensor *lr, double beta1,
                                   double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                                   opd_tensor *grad_scale, opd_tensor *found_inf) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_adam_.tensor_lr", "vLLLLLLTddddbbTT", self, grads, exp_avgs, exp_avg_sqs,
                         max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
                         grad_scale, found_inf);
}
int opd_fused_adamw_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                     opd_tensors max_exp_avg_sqs, opd_tensors state_steps, double lr, double beta1, double beta2,
                     double weight_decay, double eps, bool amsgrad, bool maximize) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_adamw_", "vLLLLLLdddddbb", self, grads, exp_avgs, exp_avg_sqs,
                         max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize);
}
int opd_fused_adamw_full_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                          opd_tensors max_exp_avg_sqs, opd_tensors state_steps, double lr, double beta1, double beta2,
                          double weight_decay, double eps, bool amsgrad, bool maximize, opd_tensor *grad_scale,
                          opd_tensor *found_inf) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_adamw_", "vLLLLLLdddddbbTT", self, grads, exp_avgs, exp_avg_sqs,
                         max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
                         grad_scale, found_inf);
}
int opd_fused_adamw_tensor_lr_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                               opd_tensors max_exp_avg_sqs, opd_tensors state_steps, opd_tensor *lr, double beta1,
                               double beta2, double weight_decay, double eps, bool amsgrad, bool maximize) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_adamw_.tensor_lr", "vLLLLLLTddddbb", self, grads, exp_avgs, exp_avg_sqs,
                         max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize);
}
int opd_fused_adamw_tensor_lr_full_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                                    opd_tensors max_exp_avg_sqs, opd_tensors state_steps, opd_tensor *lr, double beta1,
                                    double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                                    opd_tensor *grad_scale, opd_tensor *found_inf) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_fused_adamw_.tensor_lr", "vLLLLLLTddddbbTT", self, grads, exp_avgs, exp_avg_sqs,
                         max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
                         grad_scale, found_inf);
}
int opd_amp_unscale_(opd_tensors self, opd_tensor *found_inf, opd_tensor *inv_scale) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_amp_foreach_non_finite_check_and_unscale_", "vLTT", self, found_inf, inv_scale);
}
opd_tensor *opd_amp_update_scale_(opd_tensor *self, opd_tensor *growth_tracker, opd_tensor *found_inf,
                                  double scale_growth_factor, double scale_backoff_factor, int64_t growth_interval) {
    static opd_op *op;
    return opd_given_op(&op, "aten::_amp_update_scale_", "TTTTddi", self, growth_tracker, found_inf,
                        scale_growth_factor, scale_backoff_factor, growth_interval);
}
opd_tensors opd_foreach_abs(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_abs", "LL", self);
}
int opd_foreach_abs_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_abs_", "vL", self);
}
opd_tensors opd_foreach_acos(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_acos", "LL", self);
}
int opd_foreach_acos_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_acos_", "vL", self);
}
opd_tensors opd_foreach_add_List(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_add.List", "LLL", self, other);
}
opd_tensors opd_foreach_add_List_full(opd_tensors self, opd_tensors other, opd_value alpha) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_add.List", "LLLV", self, other, alpha);
}
opd_tensors opd_foreach_add_Scalar(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_add.Scalar", "LLV", self, scalar);
}
opd_tensors opd_foreach_add_ScalarList(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_add.ScalarList", "LLV", self, scalars);
}
opd_tensors opd_foreach_add_Tensor(opd_tensors self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_add.Tensor", "LLT", self, other);
}
opd_tensors opd_foreach_add_Tensor_full(opd_tensors self, opd_tensor *other, opd_value alpha) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_add.Tensor", "LLTV", self, other, alpha);
}
int opd_foreach_add_List_(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_add_.List", "vLL", self, other);
}
int opd_foreach_add_List_full_(opd_tensors self, opd_tensors other, opd_value alpha) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_add_.List", "vLLV", self, other, alpha);
}
int opd_foreach_add_Scalar_(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_add_.Scalar", "vLV", self, scalar);
}
int opd_foreach_add_ScalarList_(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_add_.ScalarList", "vLV", self, scalars);
}
int opd_foreach_add_Tensor_(opd_tensors self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_add_.Tensor", "vLT", self, other);
}
int opd_foreach_add_Tensor_full_(opd_tensors self, opd_tensor *other, opd_value alpha) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_add_.Tensor", "vLTV", self, other, alpha);
}
opd_tensors opd_foreach_addcdiv_Scalar(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_addcdiv.Scalar", "LLLL", self, tensor1, tensor2);
}
opd_tensors opd_foreach_addcdiv_Scalar_full(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value value) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_addcdiv.Scalar", "LLLLV", self, tensor1, tensor2, value);
}
opd_tensors opd_foreach_addcdiv_ScalarList(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_addcdiv.ScalarList", "LLLLV", self, tensor1, tensor2, scalars);
}
opd_tensors opd_foreach_addcdiv_Tensor(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                       opd_tensor *scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_addcdiv.Tensor", "LLLLT", self, tensor1, tensor2, scalars);
}
int opd_foreach_addcdiv_Scalar_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_addcdiv_.Scalar", "vLLL", self, tensor1, tensor2);
}
int opd_foreach_addcdiv_Scalar_full_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2, opd_value value) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_addcdiv_.Scalar", "vLLLV", self, tensor1, tensor2, value);
}
int opd_foreach_addcdiv_ScalarList_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2, opd_value scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_addcdiv_.ScalarList", "vLLLV", self, tensor1, tensor2, scalars);
}
int opd_foreach_addcdiv_Tensor_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2, opd_tensor *scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_addcdiv_.Tensor", "vLLLT", self, tensor1, tensor2, scalars);
}
opd_tensors opd_foreach_addcmul_Scalar(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_addcmul.Scalar", "LLLL", self, tensor1, tensor2);
}
opd_tensors opd_foreach_addcmul_Scalar_full(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value value) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_addcmul.Scalar", "LLLLV", self, tensor1, tensor2, value);
}
opd_tensors opd_foreach_addcmul_ScalarList(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_addcmul.ScalarList", "LLLLV", self, tensor1, tensor2, scalars);
}
opd_tensors opd_foreach_addcmul_Tensor(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                       opd_tensor *scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_addcmul.Tensor", "LLLLT", self, tensor1, tensor2, scalars);
}
int opd_foreach_addcmul_Scalar_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_addcmul_.Scalar", "vLLL", self, tensor1, tensor2);
}
int opd_foreach_addcmul_Scalar_full_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2, opd_value value) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_addcmul_.Scalar", "vLLLV", self, tensor1, tensor2, value);
}
int opd_foreach_addcmul_ScalarList_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2, opd_value scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_addcmul_.ScalarList", "vLLLV", self, tensor1, tensor2, scalars);
}
int opd_foreach_addcmul_Tensor_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2, opd_tensor *scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_addcmul_.Tensor", "vLLLT", self, tensor1, tensor2, scalars);
}
opd_tensors opd_foreach_asin(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_asin", "LL", self);
}
int opd_foreach_asin_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_asin_", "vL", self);
}
opd_tensors opd_foreach_atan(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_atan", "LL", self);
}
int opd_foreach_atan_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_atan_", "vL", self);
}
opd_tensors opd_foreach_ceil(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_ceil", "LL", self);
}
int opd_foreach_ceil_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_ceil_", "vL", self);
}
opd_tensors opd_foreach_clamp_max_List(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_clamp_max.List", "LLL", self, other);
}
opd_tensors opd_foreach_clamp_max_Scalar(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_clamp_max.Scalar", "LLV", self, scalar);
}
opd_tensors opd_foreach_clamp_max_ScalarList(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_clamp_max.ScalarList", "LLV", self, scalars);
}
int opd_foreach_clamp_max_List_(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_clamp_max_.List", "vLL", self, other);
}
int opd_foreach_clamp_max_Scalar_(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_clamp_max_.Scalar", "vLV", self, scalar);
}
int opd_foreach_clamp_max_ScalarList_(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_clamp_max_.ScalarList", "vLV", self, scalars);
}
opd_tensors opd_foreach_clamp_min_List(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_clamp_min.List", "LLL", self, other);
}
opd_tensors opd_foreach_clamp_min_Scalar(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_clamp_min.Scalar", "LLV", self, scalar);
}
opd_tensors opd_foreach_clamp_min_ScalarList(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_clamp_min.ScalarList", "LLV", self, scalars);
}
int opd_foreach_clamp_min_List_(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_clamp_min_.List", "vLL", self, other);
}
int opd_foreach_clamp_min_Scalar_(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_clamp_min_.Scalar", "vLV", self, scalar);
}
int opd_foreach_clamp_min_ScalarList_(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_clamp_min_.ScalarList", "vLV", self, scalars);
}
opd_tensors opd_foreach_clone(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_clone", "LL", self);
}
opd_tensors opd_foreach_clone_full(opd_tensors self, opd_value memory_format) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_clone", "LLV", self, memory_format);
}
opd_tensors opd_foreach_copy(opd_tensors self, opd_tensors src) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_copy", "LLL", self, src);
}
opd_tensors opd_foreach_copy_full(opd_tensors self, opd_tensors src, bool non_blocking) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_copy", "LLLb", self, src, non_blocking);
}
int opd_foreach_copy_(opd_tensors self, opd_tensors src) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_copy_", "vLL", self, src);
}
int opd_foreach_copy_full_(opd_tensors self, opd_tensors src, bool non_blocking) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_copy_", "vLLb", self, src, non_blocking);
}
opd_tensors opd_foreach_cos(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_cos", "LL", self);
}
int opd_foreach_cos_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_cos_", "vL", self);
}
opd_tensors opd_foreach_cosh(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_cosh", "LL", self);
}
int opd_foreach_cosh_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_cosh_", "vL", self);
}
opd_tensors opd_foreach_div_List(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_div.List", "LLL", self, other);
}
opd_tensors opd_foreach_div_Scalar(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_div.Scalar", "LLV", self, scalar);
}
opd_tensors opd_foreach_div_ScalarList(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_div.ScalarList", "LLV", self, scalars);
}
opd_tensors opd_foreach_div_Tensor(opd_tensors self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_div.Tensor", "LLT", self, other);
}
int opd_foreach_div_List_(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_div_.List", "vLL", self, other);
}
int opd_foreach_div_Scalar_(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_div_.Scalar", "vLV", self, scalar);
}
int opd_foreach_div_ScalarList_(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_div_.ScalarList", "vLV", self, scalars);
}
int opd_foreach_div_Tensor_(opd_tensors self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_div_.Tensor", "vLT", self, other);
}
opd_tensors opd_foreach_erf(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_erf", "LL", self);
}
int opd_foreach_erf_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_erf_", "vL", self);
}
opd_tensors opd_foreach_erfc(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_erfc", "LL", self);
}
int opd_foreach_erfc_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_erfc_", "vL", self);
}
opd_tensors opd_foreach_exp(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_exp", "LL", self);
}
int opd_foreach_exp_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_exp_", "vL", self);
}
opd_tensors opd_foreach_expm1(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_expm1", "LL", self);
}
int opd_foreach_expm1_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_expm1_", "vL", self);
}
opd_tensors opd_foreach_floor(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_floor", "LL", self);
}
int opd_foreach_floor_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_floor_", "vL", self);
}
opd_tensors opd_foreach_frac(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_frac", "LL", self);
}
int opd_foreach_frac_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_frac_", "vL", self);
}
opd_tensors opd_foreach_lerp_List(opd_tensors self, opd_tensors tensors1, opd_tensors weights) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_lerp.List", "LLLL", self, tensors1, weights);
}
opd_tensors opd_foreach_lerp_Scalar(opd_tensors self, opd_tensors tensors1, opd_value weight) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_lerp.Scalar", "LLLV", self, tensors1, weight);
}
opd_tensors opd_foreach_lerp_ScalarList(opd_tensors self, opd_tensors tensors1, opd_value weight) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_lerp.ScalarList", "LLLV", self, tensors1, weight);
}
int opd_foreach_lerp_List_(opd_tensors self, opd_tensors tensors1, opd_tensors weights) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_lerp_.List", "vLLL", self, tensors1, weights);
}
int opd_foreach_lerp_Scalar_(opd_tensors self, opd_tensors tensors1, opd_value weight) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_lerp_.Scalar", "vLLV", self, tensors1, weight);
}
int opd_foreach_lerp_ScalarList_(opd_tensors self, opd_tensors tensors1, opd_value weight) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_lerp_.ScalarList", "vLLV", self, tensors1, weight);
}
opd_tensors opd_foreach_lgamma(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_lgamma", "LL", self);
}
int opd_foreach_lgamma_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_lgamma_", "vL", self);
}
opd_tensors opd_foreach_log(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_log", "LL", self);
}
opd_tensors opd_foreach_log10(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_log10", "LL", self);
}
int opd_foreach_log10_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_log10_", "vL", self);
}
opd_tensors opd_foreach_log1p(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_log1p", "LL", self);
}
int opd_foreach_log1p_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_log1p_", "vL", self);
}
opd_tensors opd_foreach_log2(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_log2", "LL", self);
}
int opd_foreach_log2_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_log2_", "vL", self);
}
int opd_foreach_log_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_log_", "vL", self);
}
opd_tensors opd_foreach_max(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_max", "LL", self);
}
opd_tensors opd_foreach_maximum_List(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_maximum.List", "LLL", self, other);
}
opd_tensors opd_foreach_maximum_Scalar(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_maximum.Scalar", "LLV", self, scalar);
}
opd_tensors opd_foreach_maximum_ScalarList(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_maximum.ScalarList", "LLV", self, scalars);
}
int opd_foreach_maximum_List_(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_maximum_.List", "vLL", self, other);
}
int opd_foreach_maximum_Scalar_(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_maximum_.Scalar", "vLV", self, scalar);
}
int opd_foreach_maximum_ScalarList_(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_maximum_.ScalarList", "vLV", self, scalars);
}
opd_tensors opd_foreach_minimum_List(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_minimum.List", "LLL", self, other);
}
opd_tensors opd_foreach_minimum_Scalar(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_minimum.Scalar", "LLV", self, scalar);
}
opd_tensors opd_foreach_minimum_ScalarList(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_minimum.ScalarList", "LLV", self, scalars);
}
int opd_foreach_minimum_List_(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_minimum_.List", "vLL", self, other);
}
int opd_foreach_minimum_Scalar_(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_minimum_.Scalar", "vLV", self, scalar);
}
int opd_foreach_minimum_ScalarList_(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_minimum_.ScalarList", "vLV", self, scalars);
}
opd_tensors opd_foreach_mm(opd_tensors self, opd_tensors mat2) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_mm", "LLL", self, mat2);
}
opd_tensors opd_foreach_mul_List(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_mul.List", "LLL", self, other);
}
opd_tensors opd_foreach_mul_Scalar(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_mul.Scalar", "LLV", self, scalar);
}
opd_tensors opd_foreach_mul_ScalarList(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_mul.ScalarList", "LLV", self, scalars);
}
opd_tensors opd_foreach_mul_Tensor(opd_tensors self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_mul.Tensor", "LLT", self, other);
}
int opd_foreach_mul_List_(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_mul_.List", "vLL", self, other);
}
int opd_foreach_mul_Scalar_(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_mul_.Scalar", "vLV", self, scalar);
}
int opd_foreach_mul_ScalarList_(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_mul_.ScalarList", "vLV", self, scalars);
}
int opd_foreach_mul_Tensor_(opd_tensors self, opd_tensor *other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_mul_.Tensor", "vLT", self, other);
}
opd_tensors opd_foreach_neg(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_neg", "LL", self);
}
int opd_foreach_neg_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_neg_", "vL", self);
}
opd_tensors opd_foreach_norm_Scalar(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_norm.Scalar", "LL", self);
}
opd_tensors opd_foreach_norm_Scalar_full(opd_tensors self, opd_value ord, opd_value dtype) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_norm.Scalar", "LLVV", self, ord, dtype);
}
opd_tensors opd_foreach_powsum_Scalar(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_powsum.Scalar", "LL", self);
}
opd_tensors opd_foreach_powsum_Scalar_full(opd_tensors self, opd_value ord, opd_value dtype) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_powsum.Scalar", "LLVV", self, ord, dtype);
}
opd_tensors opd_foreach_pow_List(opd_tensors self, opd_tensors exponent) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_pow.List", "LLL", self, exponent);
}
opd_tensors opd_foreach_pow_Scalar(opd_tensors self, opd_value exponent) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_pow.Scalar", "LLV", self, exponent);
}
opd_tensors opd_foreach_pow_ScalarAndTensor(opd_value self, opd_tensors exponent) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_pow.ScalarAndTensor", "LVL", self, exponent);
}
opd_tensors opd_foreach_pow_ScalarList(opd_tensors self, opd_value exponent) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_pow.ScalarList", "LLV", self, exponent);
}
int opd_foreach_pow_List_(opd_tensors self, opd_tensors exponent) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_pow_.List", "vLL", self, exponent);
}
int opd_foreach_pow_Scalar_(opd_tensors self, opd_value exponent) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_pow_.Scalar", "vLV", self, exponent);
}
int opd_foreach_pow_ScalarList_(opd_tensors self, opd_value exponent) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_pow_.ScalarList", "vLV", self, exponent);
}
opd_tensors opd_foreach_reciprocal(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_reciprocal", "LL", self);
}
int opd_foreach_reciprocal_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_reciprocal_", "vL", self);
}
opd_tensors opd_foreach_round(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_round", "LL", self);
}
int opd_foreach_round_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_round_", "vL", self);
}
opd_tensors opd_foreach_rsqrt(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_rsqrt", "LL", self);
}
int opd_foreach_rsqrt_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_rsqrt_", "vL", self);
}
opd_tensors opd_foreach_sigmoid(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_sigmoid", "LL", self);
}
int opd_foreach_sigmoid_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_sigmoid_", "vL", self);
}
opd_tensors opd_foreach_sign(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_sign", "LL", self);
}
int opd_foreach_sign_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_sign_", "vL", self);
}
opd_tensors opd_foreach_sin(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_sin", "LL", self);
}
int opd_foreach_sin_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_sin_", "vL", self);
}
opd_tensors opd_foreach_sinh(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_sinh", "LL", self);
}
int opd_foreach_sinh_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_sinh_", "vL", self);
}
opd_tensors opd_foreach_sqrt(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_sqrt", "LL", self);
}
int opd_foreach_sqrt_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_sqrt_", "vL", self);
}
opd_tensors opd_foreach_sub_List(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_sub.List", "LLL", self, other);
}
opd_tensors opd_foreach_sub_List_full(opd_tensors self, opd_tensors other, opd_value alpha) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_sub.List", "LLLV", self, other, alpha);
}
opd_tensors opd_foreach_sub_Scalar(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_sub.Scalar", "LLV", self, scalar);
}
opd_tensors opd_foreach_sub_ScalarList(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_sub.ScalarList", "LLV", self, scalars);
}
int opd_foreach_sub_List_(opd_tensors self, opd_tensors other) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_sub_.List", "vLL", self, other);
}
int opd_foreach_sub_List_full_(opd_tensors self, opd_tensors other, opd_value alpha) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_sub_.List", "vLLV", self, other, alpha);
}
int opd_foreach_sub_Scalar_(opd_tensors self, opd_value scalar) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_sub_.Scalar", "vLV", self, scalar);
}
int opd_foreach_sub_ScalarList_(opd_tensors self, opd_value scalars) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_sub_.ScalarList", "vLV", self, scalars);
}
opd_tensors opd_foreach_tan(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_tan", "LL", self);
}
int opd_foreach_tan_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_tan_", "vL", self);
}
opd_tensors opd_foreach_tanh(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_tanh", "LL", self);
}
int opd_foreach_tanh_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_tanh_", "vL", self);
}
opd_tensors opd_foreach_trunc(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_trunc", "LL", self);
}
int opd_foreach_trunc_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_trunc_", "vL", self);
}
opd_tensors opd_foreach_zero(opd_tensors self) {
    static opd_op *op;
    return opd_given_list(&op, "aten::_foreach_zero", "LL", self);
}
int opd_foreach_zero_(opd_tensors self) {
    static opd_op *op;
    return opd_given_all(&op, "aten::_foreach_zero_", "vL", self);
}
OPDI_ONCE_END
