//----------------------------------------------------------------------------------------------------------------------
//  >>api:fake       programs that run on shapes alone, and what they would cost
//----------------------------------------------------------------------------------------------------------------------

/* FakeTensorMode: between begin and end operators of this thread compute sizes, strides, dtype and device of their
   results and nothing else: their fake kernels run.  Factories and opd_tensor_new_on make fakes, of any device, whether
   it is there or not; real tensors (opd_tensor_new, _from, from outside) are taken as fakes and are not written.  A
   fake says the device that it stands for, which may be meta; operators refuse those of two devices, but for 0-dim CPU
   tensors.  It has no data to read and no value.  Outside of a mode fakes are meta tensors.  Autograd, autocast (of
   devices that are not there, too), transforms and recordings work in it.  As a block: OPD_FAKE_MODE { }.  opd_fake_end
   takes the mode away, and those inside it; it works while an error is pending, and may be called twice. */
typedef struct opd_fake_block { bool open; void *mode; opd_key_guard guard; } opd_fake_block;
OPD_API opd_fake_block opd_fake_begin(void);
OPD_API void opd_fake_end(opd_fake_block *block);
OPD_API bool opd_fake_enabled(void);
/* FakeTensorMode.from_tensor: the fake that tensor is taken as in this mode (always the same); a leaf that requires
   grad, when tensor requires it: parameters are taken so, for a real leaf gets no fake gradient (an error).  NULL with
   an error: no mode. */
OPD_API opd_tensor *opd_fake_tensor(opd_tensor *tensor);
/* Inside a fake kernel, in a mode: a size that data decide, between min and max (-1: who knows).  What is computed with
   is max, or min where there is none: memory that follows from it is the most there can be.  -1 with an error outside
   of a mode, and for bounds that make no sense.  torch.library.get_ctx().new_dynamic_size. */
OPD_API int64_t opd_fake_new_size(opd_call *call, int64_t min, int64_t max);

/* What a program would cost: between begin and end a fake mode in which each operator is counted (by the innermost
   operators that it calls, if any).  flops: of matrix products and convolutions two for each multiplication with its
   addition (torch.utils.flop_counter); of pointwise operators, reductions, scans, softmax, normalisations, pooling and
   optimizers one for each element of the largest tensor; of what fills, copies, moves, sorts or draws none; of others
   what `flops` of the card says.  bytes: of results that have memory of their own.  peak: the most bytes of fakes that
   were alive at once, with those of tensors from outside (given) from their first use on; what the tape holds is alive.
   The numbers stay until opd_cost_free; all on one thread.  An OPD_FAKE_MODE in between counts the same, and is not
   needed.  NULL with an error. */
typedef struct opd_cost opd_cost;
typedef struct opd_cost_row { const opd_op *op; int64_t calls; double flops; int64_t bytes; } opd_cost_row;
typedef struct opd_cost_sum { int64_t calls; double flops; int64_t bytes, peak, given; } opd_cost_sum;
OPD_API opd_cost *opd_cost_begin(void);
OPD_API void opd_cost_end(opd_cost *cost);
OPD_API void opd_cost_free(opd_cost *cost);                                   /* ends it, too */
OPD_API opd_cost_sum opd_cost_total(const opd_cost *cost);
/* Row i, the most expensive first after opd_cost_end; op NULL: behind the last. */
OPD_API opd_cost_row opd_cost_at(const opd_cost *cost, int i);
/* A table: operators, then the sum and the peak.  Cut to cap bytes with its zero; returns the full length. */
OPD_API size_t opd_cost_print(const opd_cost *cost, char *buf, size_t cap);

