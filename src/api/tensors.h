//----------------------------------------------------------------------------------------------------------------------
//  >>api:tensors    making tensors, reading them, printing them
//----------------------------------------------------------------------------------------------------------------------

/* Creates a CPU tensor with undefined contents, in the innermost scope.  On failure returns NULL and sets an error. */
OPD_API opd_tensor *opd_tensor_new(opd_ints sizes, opd_scalar_type dtype);
/* Creates a tensor, as opd_tensor_new does, on any device that has an allocator: cpu, meta, registered devices. */
OPD_API opd_tensor *opd_tensor_new_on(opd_ints sizes, opd_scalar_type dtype, opd_device device);
/* Creates a CPU tensor with a copy of data, an array with as many elements of dtype as a tensor of these sizes has.
   OPD_TENSOR(array) creates a tensor with one dim from a C array, and takes its length and dtype from the array:
   OPD_TENSOR((float[]){1, 2, 3}) in C, or OPD_TENSOR(a) after `float a[] = {1, 2, 3};` in C and C++.  It takes arrays
   of bool, float, double, and integers except for char.  A pointer is no array, and does not compile. */
OPD_API opd_tensor *opd_tensor_from(const void *data, opd_ints sizes, opd_scalar_type dtype);
/* Creates a tensor over foreign memory, without copying.  strides are in elements; NULL means contiguous.
   deleter(data, user) runs when the last view is freed, and also if this call fails.  If deleter is NULL, the memory
   must outlive every view. */
OPD_API opd_tensor *opd_tensor_wrap(void *data, opd_ints sizes, const int64_t *strides, opd_scalar_type dtype,
                                    opd_deleter deleter, void *user);
/* Creates a 0-dim tensor that counts as a number in type promotion, as a Python number does. */
OPD_API opd_tensor *opd_tensor_wrapped_number(opd_value number);
/* Creates a tensor that wraps inner and carries one key without a backend (a user key).  Each operator that gets the
   tensor runs at that key first.  At that key, the program registers a fallback, which unwraps the arguments, calls the
   operator again and wraps the results.  The wrapper has the sizes, dtype and device of inner, and no memory.  The
   wrapper owns a reference to inner.  On failure returns NULL and sets an error. */
OPD_API opd_tensor *opd_tensor_wrap_key(opd_tensor *inner, opd_key key);
/* Returns the tensor inside a wrapper.  Returns NULL for a tensor that is not wrapped with that key. */
OPD_API opd_tensor *opd_tensor_unwrap_key(const opd_tensor *tensor, opd_key key);
/* Creates a view of a tensor's storage, without history (like detach).  strides[ndim] and offset are in elements;
   offset counts from the storage's start.  Checks that the view stays inside the storage. */
OPD_API opd_tensor *opd_tensor_view(opd_tensor *tensor, const int64_t *sizes, const int64_t *strides, int ndim,
                                    int64_t offset);

/* Queries of a tensor's properties.  If tensor is NULL, as after a failed call, it has no dims, no elements and no
   dtype.  For a freed tensor, the functions return the same, and set an error. */
OPD_API int opd_ndim(const opd_tensor *tensor);
OPD_API const int64_t *opd_sizes(const opd_tensor *tensor);
OPD_API const int64_t *opd_strides(const opd_tensor *tensor);                 /* in elements */
OPD_API int64_t opd_size(const opd_tensor *tensor, int dim);                  /* dim may be negative */
OPD_API int64_t opd_numel(const opd_tensor *tensor);
OPD_API int64_t opd_tensor_offset(const opd_tensor *tensor);                  /* elements from the storage's start */
OPD_API opd_scalar_type opd_dtype(const opd_tensor *tensor);
OPD_API opd_device opd_tensor_device(const opd_tensor *tensor);
OPD_API opd_keyset opd_tensor_keys(const opd_tensor *tensor);
OPD_API bool opd_is_contiguous(const opd_tensor *tensor);
/* opd_tensor_is_conj and opd_tensor_is_neg return true for lazy views.
   opd_tensor_is_conj: True if the memory has the conjugates of the values, for views of opd_conj (Tensor.is_conj).
   opd_tensor_is_neg: True if the memory has the negatives, for views of opd__neg_view, and of opd_imag of a conjugate
   view (Tensor.is_neg).
   Kernels never see such tensors, because fallbacks at the keys Conjugate and Negative run first and compute the
   values.  opd_data of such a tensor fails.  The functions opd_resolve_conj and opd_resolve_neg compute a tensor with
   plain values. */
OPD_API bool opd_tensor_is_conj(const opd_tensor *tensor);
OPD_API bool opd_tensor_is_neg(const opd_tensor *tensor);
OPD_API bool opd_tensor_is_wrapped_number(const opd_tensor *tensor);
OPD_API bool opd_tensor_same_storage(const opd_tensor *first, const opd_tensor *second);
OPD_API int64_t opd_tensor_storage_bytes(const opd_tensor *tensor);
/* Returns the number of writes into the tensor's storage, through any of its views.  Inference tensors do not count
   writes: for them, sets an error. */
OPD_API uint32_t opd_tensor_version(const opd_tensor *tensor);
/* Counts a write into the tensor's storage that no operator has made, such as a write through opd_data
   (torch.autograd.graph.increment_version).  Then a backward that needs the old numbers fails, and does not compute
   wrong gradients.  Call it once for each storage that was written, before or after the write.  An inference tensor has
   no count and needs none.  Returns 0, or -1 and sets an error.  Any thread may call this. */
OPD_API int opd_tensor_version_add(opd_tensor *tensor);
/* Returns another tensor with the memory, sizes and keys of this one, without history (Tensor.data).  The new tensor
   has a separate count of writes, so autograd does not notice writes into it.  opd_detach shares the count.  On failure
   returns NULL and sets an error. */
OPD_API opd_tensor *opd_tensor_data(opd_tensor *tensor);
/* Gives tensor the memory, sizes, dtype and device of data (`tensor.data = data`).  tensor keeps its history, gradient
   and count of writes, and is no longer a view.  If a node has saved tensor as an argument, the node's backward
   function reads the new data.  If the node that computed tensor has saved it as a result, the node's backward function
   reads the old data.  Returns 0, or -1 and sets an error, with nothing changed.  Fails if only one of tensor and data
   is a meta tensor, if tensor requires grad and the dtype of data is not floating, or if only one of them is an
   inference tensor.  No other thread may use tensor during this call. */
OPD_API int opd_tensor_set_data(opd_tensor *tensor, opd_tensor *data);
/* Return a pointer to the first element, for reading and writing in a kernel.  opd_data is untyped, and returns NULL,
   without an error, for a tensor without data (on the meta device, a fake, of no elements).  The other functions check
   that the tensor has the dtype in their name.  If the dtype is another one, or if the tensor has no data, they return
   NULL and set an error that says which function to use.  Take the pointer once, before the loop, and check it there:

       const float *from = opd_data_f32(x);
       float *to = opd_data_f32(y);
       if (!from || !to) { return -1; }
       for (int64_t i = 0; i < opd_numel(x); i++) { to[i] = 2 * from[i]; }

   A program that calls opd_data_f32(y)[i] = ... inside the loop crashes if the dtype is another one.  An implementation
   that is built with OPD_CHECKED returns, instead of NULL, separate memory as large as the tensor's data, so that such
   a program continues to the error. */
OPD_API void *opd_data(const opd_tensor *tensor);
OPD_API float *opd_data_f32(const opd_tensor *tensor);
OPD_API double *opd_data_f64(const opd_tensor *tensor);
OPD_API int64_t *opd_data_i64(const opd_tensor *tensor);
OPD_API int32_t *opd_data_i32(const opd_tensor *tensor);
OPD_API uint8_t *opd_data_u8(const opd_tensor *tensor);
OPD_API bool *opd_data_bool(const opd_tensor *tensor);
/* Return the value of a one-element tensor, converted to double or int64_t.  If the imaginary part of a
   complex number is not 0, they fail. */
OPD_API double opd_item_f64(const opd_tensor *tensor);
OPD_API int64_t opd_item_i64(const opd_tensor *tensor);
/* Writes PyTorch's text of a tensor into buf, cut to `cap` bytes.  Returns the full length. */
OPD_API size_t opd_tensor_print(const opd_tensor *tensor, char *buf, size_t cap);
OPD_API void opd_print(const opd_tensor *tensor);                             /* prints to stdout, with a newline */

/* Random generators: Philox 4x32-10, counter-based.  NULL is the default generator, which opd_manual_seed seeds; its
   seed is 0 at first.  The caller owns the generators of opd_generator_new.  A graph that was traced with a generator
   draws from it, and keeps it alive after opd_generator_free.  Any thread may call these functions.
   Two random operators in the arguments of one call, opd_sub(opd_randn(...), opd_randn(...)), run in an order that the
   C compiler chooses.  Assign their results to variables first. */
OPD_API void opd_manual_seed(uint64_t seed);
OPD_API opd_generator *opd_generator_new(uint64_t seed);
OPD_API void opd_generator_free(opd_generator *generator);
OPD_API void opd_generator_seed(opd_generator *generator, uint64_t seed);
/* opd_generator_take: Reserves 32-bit words of a generator's sequence (NULL: the default one), for custom kernels and
   captures.  Returns the place of the first word in the sequence, a multiple of 64.  Writes the key that makes the
   words (see opd_draw) to *key, unless key is NULL.  If words is negative, returns 0, sets an error and takes nothing.
   opd_generator_give_back: Undoes the opd_generator_take that returned `at`, if nothing was taken since.
   Any thread may call these functions.  See at::PhiloxCudaState; Philox 4x32-10 (Salmon et al., 2011). */
OPD_API uint64_t opd_generator_take(opd_generator *generator, int64_t words, uint64_t *key);
OPD_API void opd_generator_give_back(opd_generator *generator, uint64_t at, int64_t words);

