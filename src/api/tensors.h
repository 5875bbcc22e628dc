//----------------------------------------------------------------------------------------------------------------------
//  >>api:tensors    making tensors, reading them, printing them
//----------------------------------------------------------------------------------------------------------------------

/* A fresh CPU tensor with undefined contents; belongs to the innermost scope.  NULL with an error. */
OPD_API opd_tensor *opd_tensor_new(opd_ints sizes, opd_scalar_type dtype);
/* opd_tensor_new on any device that has an allocator: cpu, meta, registered ones. */
OPD_API opd_tensor *opd_tensor_new_on(opd_ints sizes, opd_scalar_type dtype, opd_device device);
/* A CPU tensor with a copy of numel elements of that dtype from data. */
OPD_API opd_tensor *opd_tensor_from(const void *data, opd_ints sizes, opd_scalar_type dtype);
/* A tensor over foreign memory, not copied.  strides in elements, NULL: contiguous.  deleter(data, user) runs when
   the last view is gone (also when this call fails); NULL: the memory outlives every view. */
OPD_API opd_tensor *opd_tensor_wrap(void *data, opd_ints sizes, const int64_t *strides, opd_scalar_type dtype,
                                    opd_deleter deleter, void *user);
/* A 0-dim tensor that yields to any tensor operand's dtype, as a Python number does. */
OPD_API opd_tensor *opd_tensor_wrapped_number(opd_value number);
/* A tensor that stands for another one and carries one key that has no backend (a user key): whatever operator meets it
   runs at that key first, where a fallback unwraps the arguments, calls again and wraps the results.  It has the inner
   one's sizes, dtype and device and no memory, and holds the inner one.  NULL with an error. */
OPD_API opd_tensor *opd_tensor_wrap_key(opd_tensor *inner, opd_key key);
/* The tensor inside; NULL for one that is not wrapped with that key. */
OPD_API opd_tensor *opd_tensor_unwrap_key(const opd_tensor *tensor, opd_key key);
/* A view on a tensor's storage, without history (as detach's): sizes and strides in elements, offset from the
   storage's start.  Checks that it stays inside the storage. */
OPD_API opd_tensor *opd_tensor_view(opd_tensor *tensor, const int64_t *sizes, const int64_t *strides, int ndim,
                                    int64_t offset);

/* Queries.  NULL, which failed calls return, has no dims, no elements and no dtype; a tensor that is gone neither, with
   an error. */
OPD_API int opd_ndim(const opd_tensor *tensor);
OPD_API const int64_t *opd_sizes(const opd_tensor *tensor);
OPD_API const int64_t *opd_strides(const opd_tensor *tensor);                 /* in elements */
OPD_API int64_t opd_size(const opd_tensor *tensor, int dim);                  /* dim may be negative */
OPD_API int64_t opd_numel(const opd_tensor *tensor);
OPD_API int64_t opd_offset(const opd_tensor *tensor);                         /* elements from the storage's start */
OPD_API opd_scalar_type opd_dtype(const opd_tensor *tensor);
OPD_API opd_device opd_tensor_device(const opd_tensor *tensor);
OPD_API opd_keyset opd_tensor_keys(const opd_tensor *tensor);
OPD_API bool opd_is_contiguous(const opd_tensor *tensor);
/* True for views that opd_conj (opd__neg_view, opd_imag of what opd_conj gave) made: their memory has the conjugates
   (negatives) of their values.  Kernels never see such tensors: the keys Conjugate and Negative compute them before.
   opd_data of one is an error; opd_resolve_conj (opd_resolve_neg) computes it.  Tensor.is_conj, Tensor.is_neg. */
OPD_API bool opd_is_conj(const opd_tensor *tensor);
OPD_API bool opd_is_neg(const opd_tensor *tensor);
OPD_API bool opd_tensor_is_wrapped_number(const opd_tensor *tensor);
OPD_API bool opd_tensor_same_storage(const opd_tensor *first, const opd_tensor *second);
OPD_API int64_t opd_tensor_storage_bytes(const opd_tensor *tensor);
/* The number of writes into a tensor's storage and all that look at it; an inference tensor has none: an error. */
OPD_API uint32_t opd_tensor_version(const opd_tensor *tensor);
/* Tensor.data: another tensor with the memory, sizes and keys of this, without history, and with its own count of
   writes, so that writing into it, no tape knows.  opd_detach shares the count.  NULL with an error. */
OPD_API opd_tensor *opd_tensor_data(opd_tensor *tensor);
/* `tensor.data = data`: tensor has the memory, sizes, dtype and device of data from here on, and keeps its own history,
   gradient and count of writes; it is no view any more.  A backward that has saved tensor as an argument reads the new
   data, one that has saved it as its own node's result the old.  0, or -1 with an error and nothing changed: a meta
   tensor for one with memory or the other way round, no floating dtype for one that requires grad, an inference tensor
   for another.  Not while another thread uses it. */
OPD_API int opd_tensor_set_data(opd_tensor *tensor, opd_tensor *data);
/* The first element, where a kernel reads and writes.  opd_data gives it untyped; NULL for a tensor without data (of
   the meta device, a fake, of no elements), which is no error in itself.  The others want the dtype that they are named
   after: for another one, and where there are no data, they give NULL with an error that says what to take.  NULL
   cannot be indexed: take the pointer once, before the loop, and look at it there,

       const float *from = opd_data_f32(x);
       float *to = opd_data_f32(y);
       if (!from || !to) { return -1; }
       for (int64_t i = 0; i < opd_numel(x); i++) { to[i] = 2 * from[i]; }

   A program that asks inside of the loop, opd_data_f32(y)[i] = ..., dies where the dtype is another one.  An
   implementation that is built with OPD_CHECKED gives memory in place of NULL, as large as the tensor's data and
   nobody's, so that such a program goes on to the error. */
OPD_API void *opd_data(const opd_tensor *tensor);
OPD_API float *opd_data_f32(const opd_tensor *tensor);
OPD_API double *opd_data_f64(const opd_tensor *tensor);
OPD_API int64_t *opd_data_i64(const opd_tensor *tensor);
OPD_API int32_t *opd_data_i32(const opd_tensor *tensor);
OPD_API uint8_t *opd_data_u8(const opd_tensor *tensor);
OPD_API bool *opd_data_bool(const opd_tensor *tensor);
/* The value of a one-element tensor; a complex number with an imaginary part is an error. */
OPD_API double opd_item_f64(const opd_tensor *tensor);
OPD_API int64_t opd_item_i64(const opd_tensor *tensor);
/* PyTorch's text of a tensor: cut to cap bytes; returns the full length. */
OPD_API size_t opd_tensor_print(const opd_tensor *tensor, char *buf, size_t cap);
OPD_API void opd_print(const opd_tensor *tensor);                             /* to stdout, with a newline */

/* The random generator: Philox 4x32-10, counter-based.  NULL is the default one (seed 0 until seeded), which
   opd_manual_seed seeds; the others belong to whoever made them.  Any thread.  Two draws in the arguments of one call,
   opd_sub(opd_randn(...), opd_randn(...)), come in the order that the C compiler likes: draw into variables before. */
OPD_API void opd_manual_seed(uint64_t seed);
OPD_API opd_generator *opd_generator_new(uint64_t seed);
OPD_API void opd_generator_free(opd_generator *generator);
OPD_API void opd_generator_seed(opd_generator *generator, uint64_t seed);
/* Takes 32-bit words of a generator's sequence (NULL: the default one), for kernels of one's own and captures: where
   they begin, a multiple of 64; *key (may be NULL) gets the seed that makes them (see opd_draw).  0 with an error, and
   nothing taken, for fewer than 0.  give_back undoes the take that returned `at` if nothing was taken since.  Any
   thread.  at::PhiloxCudaState, Philox 4x32-10 (Salmon et al., 2011). */
OPD_API uint64_t opd_generator_take(opd_generator *generator, int64_t words, uint64_t *key);
OPD_API void opd_generator_give_back(opd_generator *generator, uint64_t at, int64_t words);

