//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:create     making tensors: of a value, of numbers in a row, at random
//----------------------------------------------------------------------------------------------------------------------

/* empty.memory_format: memory that is not set */
OPD_API opd_tensor *opd_empty(opd_ints size, opd_scalar_type dtype);
OPD_API opd_tensor *opd_empty_full(opd_ints size, opd_value dtype, opd_value layout, opd_value device,
                                   opd_value pin_memory, opd_value memory_format);
/* empty_strided: memory that is not set, of these strides */
OPD_API opd_tensor *opd_empty_strided(opd_ints size, opd_ints stride, opd_scalar_type dtype);
OPD_API opd_tensor *opd_empty_strided_full(opd_ints size, opd_ints stride, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory);
/* empty_permuted: memory that is not set, whose dims lie in memory in the order of physical_layout */
OPD_API opd_tensor *opd_empty_permuted(opd_ints size, opd_ints physical_layout, opd_scalar_type dtype);
OPD_API opd_tensor *opd_empty_permuted_full(opd_ints size, opd_ints physical_layout, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory);
/* zeros: all 0 */
OPD_API opd_tensor *opd_zeros(opd_ints size, opd_scalar_type dtype);
OPD_API opd_tensor *opd_zeros_full(opd_ints size, opd_value dtype, opd_value layout, opd_value device,
                                   opd_value pin_memory);
/* ones: all 1 */
OPD_API opd_tensor *opd_ones(opd_ints size, opd_scalar_type dtype);
OPD_API opd_tensor *opd_ones_full(opd_ints size, opd_value dtype, opd_value layout, opd_value device,
                                  opd_value pin_memory);
/* full: all fill_value */
OPD_API opd_tensor *opd_full(opd_ints size, opd_value fill_value, opd_scalar_type dtype);
OPD_API opd_tensor *opd_full_full(opd_ints size, opd_value fill_value, opd_value dtype, opd_value layout,
                                  opd_value device, opd_value pin_memory);
/* empty_like: memory that is not set, of self's sizes and dtype */
OPD_API opd_tensor *opd_empty_like(opd_tensor *self);
OPD_API opd_tensor *opd_empty_like_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory, opd_value memory_format);
/* zeros_like: 0, of self's sizes and dtype */
OPD_API opd_tensor *opd_zeros_like(opd_tensor *self);
OPD_API opd_tensor *opd_zeros_like_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory, opd_value memory_format);
/* ones_like: 1, of self's sizes and dtype */
OPD_API opd_tensor *opd_ones_like(opd_tensor *self);
OPD_API opd_tensor *opd_ones_like_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                       opd_value pin_memory, opd_value memory_format);
/* full_like: fill_value, of self's sizes and dtype */
OPD_API opd_tensor *opd_full_like(opd_tensor *self, opd_value fill_value);
OPD_API opd_tensor *opd_full_like_full(opd_tensor *self, opd_value fill_value, opd_value dtype, opd_value layout,
                                       opd_value device, opd_value pin_memory, opd_value memory_format);
/* new_empty: memory that is not set, of self's dtype and device */
OPD_API opd_tensor *opd_new_empty(opd_tensor *self, opd_ints size);
OPD_API opd_tensor *opd_new_empty_full(opd_tensor *self, opd_ints size, opd_value dtype, opd_value layout,
                                       opd_value device, opd_value pin_memory);
/* new_empty_strided: memory that is not set, of these strides and self's dtype and device */
OPD_API opd_tensor *opd_new_empty_strided(opd_tensor *self, opd_ints size, opd_ints stride);
OPD_API opd_tensor *opd_new_empty_strided_full(opd_tensor *self, opd_ints size, opd_ints stride, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* new_zeros: 0, of self's dtype and device */
OPD_API opd_tensor *opd_new_zeros(opd_tensor *self, opd_ints size);
OPD_API opd_tensor *opd_new_zeros_full(opd_tensor *self, opd_ints size, opd_value dtype, opd_value layout,
                                       opd_value device, opd_value pin_memory);
/* new_ones: 1, of self's dtype and device */
OPD_API opd_tensor *opd_new_ones(opd_tensor *self, opd_ints size);
OPD_API opd_tensor *opd_new_ones_full(opd_tensor *self, opd_ints size, opd_value dtype, opd_value layout,
                                      opd_value device, opd_value pin_memory);
/* new_full: fill_value, of self's dtype and device */
OPD_API opd_tensor *opd_new_full(opd_tensor *self, opd_ints size, opd_value fill_value);
OPD_API opd_tensor *opd_new_full_full(opd_tensor *self, opd_ints size, opd_value fill_value, opd_value dtype,
                                      opd_value layout, opd_value device, opd_value pin_memory);
/* scalar_tensor: a number as a tensor without dimensions */
OPD_API opd_tensor *opd_scalar_tensor(opd_value s, opd_scalar_type dtype);
OPD_API opd_tensor *opd_scalar_tensor_full(opd_value s, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory);
/* fill_.Scalar: writes value into self */
OPD_API opd_tensor *opd_fill_(opd_tensor *self, opd_value value);
/* fill_.Tensor: writes value into self */
OPD_API opd_tensor *opd_fill_Tensor_(opd_tensor *self, opd_tensor *value);
/* zero_: writes 0 into self */
OPD_API opd_tensor *opd_zero_(opd_tensor *self);
/* fill.Scalar: self's sizes, all value */
OPD_API opd_tensor *opd_fill(opd_tensor *self, opd_value value);
/* fill.Tensor: self's sizes, all value */
OPD_API opd_tensor *opd_fill_Tensor(opd_tensor *self, opd_tensor *value);
/* zero: self's sizes, all 0 */
OPD_API opd_tensor *opd_zero(opd_tensor *self);
/* arange: start (0), start + step (1), ... up to end, which is left out */
OPD_API opd_tensor *opd_arange(opd_value end, opd_scalar_type dtype);
OPD_API opd_tensor *opd_arange_full(opd_value end, opd_value dtype, opd_value layout, opd_value device,
                                    opd_value pin_memory);
/* arange.start: start (0), start + step (1), ... up to end, which is left out */
OPD_API opd_tensor *opd_arange_start(opd_value start, opd_value end, opd_scalar_type dtype);
OPD_API opd_tensor *opd_arange_start_full(opd_value start, opd_value end, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory);
/* arange.start_step: start (0), start + step (1), ... up to end, which is left out */
OPD_API opd_tensor *opd_arange_start_step(opd_value start, opd_value end, opd_value step, opd_scalar_type dtype);
OPD_API opd_tensor *opd_arange_start_step_full(opd_value start, opd_value end, opd_value step, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* range: start, start + step (1), ... up to end, which is in it */
OPD_API opd_tensor *opd_range(opd_value start, opd_value end, opd_scalar_type dtype);
OPD_API opd_tensor *opd_range_full(opd_value start, opd_value end, opd_value dtype, opd_value layout, opd_value device,
                                   opd_value pin_memory);
/* range.step: start, start + step (1), ... up to end, which is in it */
OPD_API opd_tensor *opd_range_step(opd_value start, opd_value end, opd_value step, opd_scalar_type dtype);
OPD_API opd_tensor *opd_range_step_full(opd_value start, opd_value end, opd_value step, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* linspace: steps numbers from start to end, evenly spaced */
OPD_API opd_tensor *opd_linspace(opd_value start, opd_value end, int64_t steps, opd_scalar_type dtype);
OPD_API opd_tensor *opd_linspace_full(opd_value start, opd_value end, int64_t steps, opd_value dtype, opd_value layout,
                                      opd_value device, opd_value pin_memory);
/* logspace: base to the power of each of linspace */
OPD_API opd_tensor *opd_logspace(opd_value start, opd_value end, int64_t steps, double base, opd_scalar_type dtype);
OPD_API opd_tensor *opd_logspace_full(opd_value start, opd_value end, int64_t steps, double base, opd_value dtype,
                                      opd_value layout, opd_value device, opd_value pin_memory);
/* linspace.Tensor_Tensor: steps numbers from start to end, evenly spaced */
OPD_API opd_tensor *opd_linspace_Tensor_Tensor(opd_tensor *start, opd_tensor *end, int64_t steps,
                                        opd_scalar_type dtype);
OPD_API opd_tensor *opd_linspace_Tensor_Tensor_full(opd_tensor *start, opd_tensor *end, int64_t steps, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* linspace.Tensor_Scalar: steps numbers from start to end, evenly spaced */
OPD_API opd_tensor *opd_linspace_Tensor_Scalar(opd_tensor *start, opd_value end, int64_t steps, opd_scalar_type dtype);
OPD_API opd_tensor *opd_linspace_Tensor_Scalar_full(opd_tensor *start, opd_value end, int64_t steps, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* linspace.Scalar_Tensor: steps numbers from start to end, evenly spaced */
OPD_API opd_tensor *opd_linspace_Scalar_Tensor(opd_value start, opd_tensor *end, int64_t steps, opd_scalar_type dtype);
OPD_API opd_tensor *opd_linspace_Scalar_Tensor_full(opd_value start, opd_tensor *end, int64_t steps, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* logspace.Tensor_Tensor: base to the power of each of linspace */
OPD_API opd_tensor *opd_logspace_Tensor_Tensor(opd_tensor *start, opd_tensor *end, int64_t steps, double base,
                                        opd_scalar_type dtype);
OPD_API opd_tensor *opd_logspace_Tensor_Tensor_full(opd_tensor *start, opd_tensor *end, int64_t steps, double base,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory);
/* logspace.Tensor_Scalar: base to the power of each of linspace */
OPD_API opd_tensor *opd_logspace_Tensor_Scalar(opd_tensor *start, opd_value end, int64_t steps, double base,
                                        opd_scalar_type dtype);
OPD_API opd_tensor *opd_logspace_Tensor_Scalar_full(opd_tensor *start, opd_value end, int64_t steps, double base,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory);
/* logspace.Scalar_Tensor: base to the power of each of linspace */
OPD_API opd_tensor *opd_logspace_Scalar_Tensor(opd_value start, opd_tensor *end, int64_t steps, double base,
                                        opd_scalar_type dtype);
OPD_API opd_tensor *opd_logspace_Scalar_Tensor_full(opd_value start, opd_tensor *end, int64_t steps, double base,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory);
/* eye: 1 on the diagonal of [n, m], 0 elsewhere */
OPD_API opd_tensor *opd_eye(int64_t n, opd_scalar_type dtype);
OPD_API opd_tensor *opd_eye_full(int64_t n, opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory);
/* eye.m: 1 on the diagonal of [n, m], 0 elsewhere */
OPD_API opd_tensor *opd_eye_m(int64_t n, int64_t m, opd_scalar_type dtype);
OPD_API opd_tensor *opd_eye_m_full(int64_t n, int64_t m, opd_value dtype, opd_value layout, opd_value device,
                                   opd_value pin_memory);
/* tril: the lower triangle, 0 above diagonal */
OPD_API opd_tensor *opd_tril(opd_tensor *self);
OPD_API opd_tensor *opd_tril_full(opd_tensor *self, int64_t diagonal);
OPD_API opd_tensor *opd_tril_(opd_tensor *self);
OPD_API opd_tensor *opd_tril_full_(opd_tensor *self, int64_t diagonal);
/* triu: the upper triangle, 0 below diagonal */
OPD_API opd_tensor *opd_triu(opd_tensor *self);
OPD_API opd_tensor *opd_triu_full(opd_tensor *self, int64_t diagonal);
OPD_API opd_tensor *opd_triu_(opd_tensor *self);
OPD_API opd_tensor *opd_triu_full_(opd_tensor *self, int64_t diagonal);
/* tril_indices: rows and columns of the lower triangle: [2, count] */
OPD_API opd_tensor *opd_tril_indices(int64_t row, int64_t col);
OPD_API opd_tensor *opd_tril_indices_full(int64_t row, int64_t col, int64_t offset, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory);
/* triu_indices: rows and columns of the upper triangle: [2, count] */
OPD_API opd_tensor *opd_triu_indices(int64_t row, int64_t col);
OPD_API opd_tensor *opd_triu_indices_full(int64_t row, int64_t col, int64_t offset, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory);
/* rand: uniform numbers in [0, 1) */
OPD_API opd_tensor *opd_rand(opd_ints size, opd_scalar_type dtype);
OPD_API opd_tensor *opd_rand_full(opd_ints size, opd_value dtype, opd_value layout, opd_value device,
                                  opd_value pin_memory);
/* rand.generator: uniform numbers in [0, 1) */
OPD_API opd_tensor *opd_rand_generator(opd_ints size, opd_generator *generator, opd_scalar_type dtype);
OPD_API opd_tensor *opd_rand_generator_full(opd_ints size, opd_generator *generator, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory);
/* randn: normal numbers, mean 0, variance 1 */
OPD_API opd_tensor *opd_randn(opd_ints size, opd_scalar_type dtype);
OPD_API opd_tensor *opd_randn_full(opd_ints size, opd_value dtype, opd_value layout, opd_value device,
                                   opd_value pin_memory);
/* randn.generator: normal numbers, mean 0, variance 1 */
OPD_API opd_tensor *opd_randn_generator(opd_ints size, opd_generator *generator, opd_scalar_type dtype);
OPD_API opd_tensor *opd_randn_generator_full(opd_ints size, opd_generator *generator, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory);
/* randint: uniform integers in [low (0), high) */
OPD_API opd_tensor *opd_randint(int64_t high, opd_ints size, opd_scalar_type dtype);
OPD_API opd_tensor *opd_randint_full(int64_t high, opd_ints size, opd_value dtype, opd_value layout, opd_value device,
                                     opd_value pin_memory);
/* randint.generator: uniform integers in [low (0), high) */
OPD_API opd_tensor *opd_randint_generator(int64_t high, opd_ints size, opd_generator *generator, opd_scalar_type dtype);
OPD_API opd_tensor *opd_randint_generator_full(int64_t high, opd_ints size, opd_generator *generator, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* randint.low: uniform integers in [low (0), high) */
OPD_API opd_tensor *opd_randint_low(int64_t low, int64_t high, opd_ints size, opd_scalar_type dtype);
OPD_API opd_tensor *opd_randint_low_full(int64_t low, int64_t high, opd_ints size, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory);
/* randint.low_generator: uniform integers in [low (0), high) */
OPD_API opd_tensor *opd_randint_low_generator(int64_t low, int64_t high, opd_ints size, opd_generator *generator,
                                        opd_scalar_type dtype);
OPD_API opd_tensor *opd_randint_low_generator_full(int64_t low, int64_t high, opd_ints size, opd_generator *generator,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory);
/* randperm: 0 to n - 1 in random order */
OPD_API opd_tensor *opd_randperm(int64_t n, opd_scalar_type dtype);
OPD_API opd_tensor *opd_randperm_full(int64_t n, opd_value dtype, opd_value layout, opd_value device,
                                      opd_value pin_memory);
/* randperm.generator: 0 to n - 1 in random order */
OPD_API opd_tensor *opd_randperm_generator(int64_t n, opd_generator *generator, opd_scalar_type dtype);
OPD_API opd_tensor *opd_randperm_generator_full(int64_t n, opd_generator *generator, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory);
/* rand_like: uniform numbers in [0, 1), of self's sizes */
OPD_API opd_tensor *opd_rand_like(opd_tensor *self);
OPD_API opd_tensor *opd_rand_like_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                       opd_value pin_memory, opd_value memory_format);
/* rand_like.generator: rand_like of a generator */
OPD_API opd_tensor *opd_rand_like_generator(opd_tensor *self, opd_generator *generator);
OPD_API opd_tensor *opd_rand_like_generator_full(opd_tensor *self, opd_generator *generator, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory,
                                        opd_value memory_format);
/* randn_like: normal numbers, of self's sizes */
OPD_API opd_tensor *opd_randn_like(opd_tensor *self);
OPD_API opd_tensor *opd_randn_like_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory, opd_value memory_format);
/* randn_like.generator: randn_like of a generator */
OPD_API opd_tensor *opd_randn_like_generator(opd_tensor *self, opd_generator *generator);
OPD_API opd_tensor *opd_randn_like_generator_full(opd_tensor *self, opd_generator *generator, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory,
                                        opd_value memory_format);
/* randint_like: uniform integers in [low (0), high), of self's sizes */
OPD_API opd_tensor *opd_randint_like(opd_tensor *self, int64_t high);
OPD_API opd_tensor *opd_randint_like_full(opd_tensor *self, int64_t high, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory, opd_value memory_format);
/* randint_like.generator: randint_like of a generator */
OPD_API opd_tensor *opd_randint_like_generator(opd_tensor *self, int64_t high, opd_generator *generator);
OPD_API opd_tensor *opd_randint_like_generator_full(opd_tensor *self, int64_t high, opd_generator *generator,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory,
                                        opd_value memory_format);
/* randint_like.low_dtype: uniform integers in [low (0), high), of self's sizes */
OPD_API opd_tensor *opd_randint_like_low(opd_tensor *self, int64_t low, int64_t high);
OPD_API opd_tensor *opd_randint_like_low_full(opd_tensor *self, int64_t low, int64_t high, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory,
                                        opd_value memory_format);
/* randint_like.low_generator_dtype: randint_like.low_dtype of a generator */
OPD_API opd_tensor *opd_randint_like_low_generator_dtype(opd_tensor *self, int64_t low, int64_t high,
                                        opd_generator *generator);
OPD_API opd_tensor *opd_randint_like_low_generator_dtype_full(opd_tensor *self, int64_t low, int64_t high,
                                        opd_generator *generator, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory, opd_value memory_format);
/* randint_like.Tensor: uniform integers in [0, high), of self's sizes */
OPD_API opd_tensor *opd_randint_like_Tensor(opd_tensor *self, opd_tensor *high);
OPD_API opd_tensor *opd_randint_like_Tensor_full(opd_tensor *self, opd_tensor *high, opd_value dtype, opd_value layout,
                                        opd_value device, opd_value pin_memory, opd_value memory_format);
/* randint_like.Tensor_generator: randint_like.Tensor of a generator */
OPD_API opd_tensor *opd_randint_like_Tensor_generator(opd_tensor *self, opd_tensor *high, opd_generator *generator);
OPD_API opd_tensor *opd_randint_like_Tensor_generator_full(opd_tensor *self, opd_tensor *high, opd_generator *generator,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory,
                                        opd_value memory_format);
/* normal_: fills self with normal numbers */
OPD_API opd_tensor *opd_normal_(opd_tensor *self, double mean, double std);
OPD_API opd_tensor *opd_normal_full_(opd_tensor *self, double mean, double std, opd_generator *generator);
/* uniform_: fills self with uniform numbers in [from, to) */
OPD_API opd_tensor *opd_uniform_(opd_tensor *self, double from, double to);
OPD_API opd_tensor *opd_uniform_full_(opd_tensor *self, double from, double to, opd_generator *generator);
/* exponential_: fills self with exponentially distributed numbers of rate lambd */
OPD_API opd_tensor *opd_exponential_(opd_tensor *self, double lambd);
OPD_API opd_tensor *opd_exponential_full_(opd_tensor *self, double lambd, opd_generator *generator);
/* random_: fills self with uniform integers in [from (0), to) */
OPD_API opd_tensor *opd_random_(opd_tensor *self);
OPD_API opd_tensor *opd_random_full_(opd_tensor *self, opd_generator *generator);
/* random_.from: fills self with uniform integers in [from (0), to) */
OPD_API opd_tensor *opd_random_from_(opd_tensor *self, int64_t from, opd_value to);
OPD_API opd_tensor *opd_random_from_full_(opd_tensor *self, int64_t from, opd_value to, opd_generator *generator);
/* random_.to: fills self with uniform integers in [from (0), to) */
OPD_API opd_tensor *opd_random_to_(opd_tensor *self, int64_t to);
OPD_API opd_tensor *opd_random_to_full_(opd_tensor *self, int64_t to, opd_generator *generator);
/* bernoulli_.float: fills self with 1 where a uniform number is below p, else 0 */
OPD_API opd_tensor *opd_bernoulli_(opd_tensor *self, double p);
OPD_API opd_tensor *opd_bernoulli_full_(opd_tensor *self, double p, opd_generator *generator);
/* bernoulli_.Tensor: fills self with 1 where a uniform number is below p, else 0 */
OPD_API opd_tensor *opd_bernoulli_Tensor_(opd_tensor *self, opd_tensor *p);
OPD_API opd_tensor *opd_bernoulli_Tensor_full_(opd_tensor *self, opd_tensor *p, opd_generator *generator);
/* bernoulli.Tensor: 1 with the probability p (or that in self), else 0 */
OPD_API opd_tensor *opd_bernoulli_Tensor(opd_tensor *self, opd_tensor *p);
OPD_API opd_tensor *opd_bernoulli_Tensor_full(opd_tensor *self, opd_tensor *p, opd_generator *generator);
/* bernoulli: 1 with the probability p (or that in self), else 0 */
OPD_API opd_tensor *opd_bernoulli(opd_tensor *self);
OPD_API opd_tensor *opd_bernoulli_full(opd_tensor *self, opd_generator *generator);
/* bernoulli.p: 1 with the probability p (or that in self), else 0 */
OPD_API opd_tensor *opd_bernoulli_p(opd_tensor *self, double p);
OPD_API opd_tensor *opd_bernoulli_p_full(opd_tensor *self, double p, opd_generator *generator);
/* normal_functional: normal numbers of self's sizes */
OPD_API opd_tensor *opd_normal_functional(opd_tensor *self, double mean, double std);
OPD_API opd_tensor *opd_normal_functional_full(opd_tensor *self, double mean, double std, opd_generator *generator);
/* normal.Tensor_float: normal numbers of these means and deviations */
OPD_API opd_tensor *opd_normal_Tensor_float(opd_tensor *mean, double std);
OPD_API opd_tensor *opd_normal_Tensor_float_full(opd_tensor *mean, double std, opd_generator *generator);
/* normal.float_Tensor: normal numbers of these means and deviations */
OPD_API opd_tensor *opd_normal_float_Tensor(double mean, opd_tensor *std);
OPD_API opd_tensor *opd_normal_float_Tensor_full(double mean, opd_tensor *std, opd_generator *generator);
/* normal.Tensor_Tensor: normal numbers of these means and deviations */
OPD_API opd_tensor *opd_normal_Tensor_Tensor(opd_tensor *mean, opd_tensor *std);
OPD_API opd_tensor *opd_normal_Tensor_Tensor_full(opd_tensor *mean, opd_tensor *std, opd_generator *generator);
/* normal.float_float: normal numbers of these means and deviations */
OPD_API opd_tensor *opd_normal(double mean, double std, opd_ints size);
OPD_API opd_tensor *opd_normal_full(double mean, double std, opd_ints size, opd_generator *generator, opd_value dtype,
                                    opd_value layout, opd_value device, opd_value pin_memory);
/* uniform: uniform numbers in [from, to), of self's sizes */
OPD_API opd_tensor *opd_uniform(opd_tensor *self);
OPD_API opd_tensor *opd_uniform_full(opd_tensor *self, double from, double to, opd_generator *generator);
/* random: uniform integers in [from (0), to), of self's sizes */
OPD_API opd_tensor *opd_random(opd_tensor *self);
OPD_API opd_tensor *opd_random_full(opd_tensor *self, opd_generator *generator);
/* random.from: uniform integers in [from (0), to), of self's sizes */
OPD_API opd_tensor *opd_random_from(opd_tensor *self, int64_t from, opd_value to);
OPD_API opd_tensor *opd_random_from_full(opd_tensor *self, int64_t from, opd_value to, opd_generator *generator);
/* random.to: uniform integers in [from (0), to), of self's sizes */
OPD_API opd_tensor *opd_random_to(opd_tensor *self, int64_t to);
OPD_API opd_tensor *opd_random_to_full(opd_tensor *self, int64_t to, opd_generator *generator);
/* exponential: exponentially distributed numbers of rate lambd, of self's sizes */
OPD_API opd_tensor *opd_exponential(opd_tensor *self);
OPD_API opd_tensor *opd_exponential_full(opd_tensor *self, double lambd, opd_generator *generator);
/* geometric: trials until one of probability p succeeds, of self's sizes */
OPD_API opd_tensor *opd_geometric(opd_tensor *self, double p);
OPD_API opd_tensor *opd_geometric_full(opd_tensor *self, double p, opd_generator *generator);
/* geometric_: fills self with trials until one of probability p succeeds */
OPD_API opd_tensor *opd_geometric_(opd_tensor *self, double p);
OPD_API opd_tensor *opd_geometric_full_(opd_tensor *self, double p, opd_generator *generator);
/* cauchy: Cauchy distributed numbers, of self's sizes */
OPD_API opd_tensor *opd_cauchy(opd_tensor *self);
OPD_API opd_tensor *opd_cauchy_full(opd_tensor *self, double median, double sigma, opd_generator *generator);
/* cauchy_: fills self with Cauchy distributed numbers */
OPD_API opd_tensor *opd_cauchy_(opd_tensor *self);
OPD_API opd_tensor *opd_cauchy_full_(opd_tensor *self, double median, double sigma, opd_generator *generator);
/* log_normal: numbers whose logarithms are normal, of self's sizes */
OPD_API opd_tensor *opd_log_normal(opd_tensor *self);
OPD_API opd_tensor *opd_log_normal_full(opd_tensor *self, double mean, double std, opd_generator *generator);
/* log_normal_: fills self with numbers whose logarithms are normal */
OPD_API opd_tensor *opd_log_normal_(opd_tensor *self);
OPD_API opd_tensor *opd_log_normal_full_(opd_tensor *self, double mean, double std, opd_generator *generator);
/* poisson: Poisson numbers of the means in self */
OPD_API opd_tensor *opd_poisson(opd_tensor *self);
OPD_API opd_tensor *opd_poisson_full(opd_tensor *self, opd_generator *generator);
/* binomial: successes among count trials of probability prob */
OPD_API opd_tensor *opd_binomial(opd_tensor *count, opd_tensor *prob);
OPD_API opd_tensor *opd_binomial_full(opd_tensor *count, opd_tensor *prob, opd_generator *generator);
/* _standard_gamma: gamma distributed numbers of the shapes in self */
OPD_API opd_tensor *opd_standard_gamma(opd_tensor *self);
OPD_API opd_tensor *opd_standard_gamma_full(opd_tensor *self, opd_generator *generator);
/* _sample_dirichlet: Dirichlet distributed numbers of the parameters in self, which along the last dim sum to 1 */
OPD_API opd_tensor *opd_sample_dirichlet(opd_tensor *self);
OPD_API opd_tensor *opd_sample_dirichlet_full(opd_tensor *self, opd_generator *generator);

