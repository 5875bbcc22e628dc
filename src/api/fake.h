//----------------------------------------------------------------------------------------------------------------------
//  >>api:fake       running programs on shapes alone, and estimating their cost (may change)
//----------------------------------------------------------------------------------------------------------------------

/* Opens a fake mode on this thread (torch's FakeTensorMode) and returns its block.  Until opd_fake_end, operators of
   this thread run their fake kernels, which compute only the sizes, strides, dtype and device of results.  Operators
   that create tensors, and opd_tensor_new_on, create fakes.
   A fake reports the device that it stands for, which need not be present and may be meta; it has no data.  Real
   tensors (from opd_tensor_new or opd_tensor_from, or made before the mode) are treated as fakes and never written.
   An operator fails if its fakes are on two devices; 0-dim CPU tensors are allowed together with tensors of another
   device.  After the mode, fakes are meta tensors.  Autograd, autocast (also for devices that are not present),
   transforms and recordings work in the mode.
   opd_fake_end: Closes the mode and all modes opened inside it.  Works while an error is pending, and may be called
   twice.  The block form is OPD_FAKE_MODE { }. */
typedef struct opd_fake_block { bool open; void *mode; opd_key_guard guard; } opd_fake_block;
OPD_NEW opd_fake_block opd_fake_begin(void);
OPD_NEW void opd_fake_end(opd_fake_block *block);
/* Returns true if a fake mode is open on this thread. */
OPD_NEW bool opd_fake_enabled(void);
/* Returns the fake that stands for tensor in this mode.  Further calls return the same fake
   (FakeTensorMode.from_tensor).  If tensor requires grad, the fake is a leaf that requires grad.  Use this function for
   parameters, because a real leaf must not get a fake gradient.  Returns NULL and sets an error if no mode is open. */
OPD_NEW opd_tensor *opd_fake_tensor(opd_tensor *tensor);
/* Returns a new size that depends on data, for a fake kernel in a fake mode (torch.library.get_ctx().new_dynamic_size).
   The size lies between min and max.  max -1 means that there is no upper bound.  The kernel must pass the number on
   as a size: in the mode, it stands for a symbol, u0 for example, and the sizes of later results follow from it.  To
   find out how, the library runs fake kernels several times for a call, also with numbers outside of the bounds.
   opd_size and opd_numel return a number: first max, or min if max is -1.  If an operator must know the size, for
   example in a sum with a tensor of 4 elements, the size is taken to be 4 from then on, in all tensors of the mode.  A
   call fails if it fits no size within the bounds, or if the library does not find it: then say it with opd_check_size.
   Returns -1 and sets an error outside of a mode, if min < 0, or if 0 <= max < min. */
OPD_NEW int64_t opd_fake_new_size(opd_call *call, int64_t min, int64_t max);
/* Says that the size of tensor at dim is `size` (torch._check(tensor.size(dim) == size)).  Negative dims count from the
   end.  In a fake mode, a size that depends on data is then `size` in all tensors of the mode, and later operators
   compute with it.  For other sizes, compares them.  Returns 0, or -1 and sets an error if the size is or must be
   another one, or if there is no such dim. */
OPD_NEW int opd_check_size(opd_tensor *tensor, int dim, int64_t size);
/* Writes the sizes of tensor, for example "(2*u0, 3)", into buf.  u0, u1, ... are sizes that depend on data.  Known
   sizes are written as numbers; outside of a fake mode, all are.  The text is cut to `cap` bytes including the final
   zero.  Returns the full length, or 0 and sets an error if tensor is NULL. */
OPD_NEW size_t opd_fake_shape_print(const opd_tensor *tensor, char *buf, size_t cap);
/* Writes a line into buf for each size that depends on data in the open fake mode: its bounds, and the conditions that
   the operators called so far set, which the real sizes must fulfil (ShapeEnv.deferred_runtime_asserts).  Examples:  "0
   <= u0 <= 6, u0 == 4 or u0 == 1", "0 <= u1 <= 6, u1 == u0", "u2 >= 0, u2 % 2 == 0".  The text is cut to `cap` bytes
   including the final zero.  Returns the full length. */
OPD_NEW size_t opd_fake_sizes_print(char *buf, size_t cap);

/* Opens a fake mode in which each operator is counted, to estimate the cost of a program.  An operator that calls
   others is counted through the innermost operators that it calls.  opd_cost_end closes the mode.  All calls must come
   from one thread.  On failure returns NULL and sets an error.  The results stay valid until opd_cost_free.  An
   OPD_FAKE_MODE block between opd_cost_begin and opd_cost_end is not needed, and does not change the results.
   calls: Number of calls.
   flops: For matrix products and convolutions, two for a multiplication and its addition (torch.utils.flop_counter).
   For pointwise operators, reductions, scans, softmax, normalisations, pooling and optimizers: one per element of the
   largest tensor.  For operators that fill, copy, move, sort or draw random numbers: none.  For other operators: the
   result of `flops` in the operator descriptor.
   bytes: Bytes of the results, without results that share the memory of an argument.
   peak: The largest number of bytes of fakes that were alive at the same time, including fakes that the autograd graph
   holds.  Tensors from outside of the mode count from their first use on.
   given: Bytes of the tensors from outside of the mode. */
typedef struct opd_cost opd_cost;
typedef struct opd_cost_row { const opd_op *op; int64_t calls; double flops; int64_t bytes; } opd_cost_row;
typedef struct opd_cost_sum { int64_t calls; double flops; int64_t bytes, peak, given; } opd_cost_sum;
OPD_NEW opd_cost *opd_cost_begin(void);
OPD_NEW void opd_cost_end(opd_cost *cost);
/* Frees the results.  Closes the mode if opd_cost_end did not. */
OPD_NEW void opd_cost_free(opd_cost *cost);
/* Returns the sums over all operators. */
OPD_NEW opd_cost_sum opd_cost_total(const opd_cost *cost);
/* Returns row i, one per operator.  After opd_cost_end, the most expensive operator is row 0.  Beyond the last row, op
   is NULL. */
OPD_NEW opd_cost_row opd_cost_at(const opd_cost *cost, int i);
/* Writes a table with a row for each operator, then the sum and the peak, into buf.  The text is cut to `cap` bytes
   including the final zero.  Returns the full length. */
OPD_NEW size_t opd_cost_print(const opd_cost *cost, char *buf, size_t cap);

