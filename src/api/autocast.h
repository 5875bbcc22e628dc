//----------------------------------------------------------------------------------------------------------------------
//  >>api:autocast   mixed precision: regions, policies, the cache of cast weights
//----------------------------------------------------------------------------------------------------------------------

/* Regions of this thread in which operators choose their dtypes by their card's .autocast (torch.autocast): matrix
   products and convolutions run in `dtype` (bfloat16 on CPU, XLA and HPU, else float16), what needs the range in
   float32.  Floating arguments on the device but float64 are cast, differentiably; in-place and out= forms are left
   alone.  As a block: OPD_AUTOCAST(OPD_CPU) { }, OPD_AUTOCAST_AS(device, dtype, enabled, cache) { }.
   dtype OPD_DTYPE_NONE: what the region around says, or the device's default.  enabled false: off inside.  cache 1, 0,
   -1 as around: casts of weights (float32 leaves that require grad) are kept until the outermost region ends.
   Regions nest, devices are apart.  A device that nobody has registered (but CUDA and its like by a warning) or that
   knows no autocast is an error and no region (open false); a dtype it does not support gives a warning and a region
   that is off. */
typedef struct opd_autocast_region { uint16_t was; bool was_on, open; } opd_autocast_region;
OPD_API opd_autocast_region opd_autocast_begin(opd_backend device, opd_scalar_type dtype, bool enabled, int cache);
/* Puts back what was before; the end of the outermost region clears the cache.  Twice is harmless; works while an error
   is pending.  What a kernel has begun ends with it.  opd_dispatch_state carries regions to another thread. */
OPD_API void opd_autocast_end(opd_autocast_region *region);
OPD_API bool opd_autocast_enabled(opd_backend device);            /* torch.is_autocast_enabled; not inside a policy */
OPD_API opd_scalar_type opd_autocast_dtype(opd_backend device);   /* torch.get_autocast_dtype; NONE: it has none */
OPD_API bool opd_autocast_cache_enabled(void);
/* Lets go of all cast weights, of all threads (torch.clear_autocast_cache). */
OPD_API void opd_autocast_cache_clear(void);
/* Declares which dtypes regions of a registered backend may have (get_amp_supported_dtype); else float16 and bfloat16.
   0, or -1 with an error.  For ever; any thread. */
OPD_API int opd_autocast_support(opd_backend device, const opd_scalar_type *dtypes, int count);

/* Gives an operator, defined already or later, a policy at the autocast key of a device, as a kernel of this library;
   device OPD_BACKEND_COUNT: of every device.  torch.library.register_autocast.  0, or -1 with nothing changed. */
OPD_API int opd_autocast_register(opd_library *lib, const char *name, opd_backend device, opd_autocast policy);
/* For kernels written by hand at AutocastCPU and its like, which exclude that key and call their operator again (see
   examples/autocast_wrappers.c).  opd_autocast_cast: tensor cast to dtype, of the innermost scope; tensor itself when
   it has that dtype, is float64 or no floating tensor; weights through the cache (at::autocast::cached_cast).  NULL for
   NULL, or with an error.  opd_autocast_promote: the widest of `dtype` and the dtypes of tensors (without NULLs and
   float64); a dtype that is neither float32 nor the device's is an error, and NONE (at::autocast::promote_type). */
OPD_API opd_tensor *opd_autocast_cast(opd_scalar_type dtype, opd_tensor *tensor);
OPD_API opd_scalar_type opd_autocast_promote(opd_scalar_type dtype, opd_tensor *const *tensors, int count);

/* For custom functions under autocast (torch.amp.custom_fwd, custom_bwd): `forward` of the struct calls opd_custom_fwd,
   which runs the function given, its backward opd_custom_bwd.  cast_inputs OPD_DTYPE_NONE: forward runs in the state
   that is there; a dtype: in a region the floating inputs of that device but float64 are cast to it, and forward runs
   with autocast off; outside nothing is cast.  Backward runs as forward did, on or off and with its dtype. */
OPD_API int opd_custom_fwd(opd_context *ctx, opd_backend device, opd_scalar_type cast_inputs, opd_setup_fn forward);
OPD_API int opd_custom_bwd(opd_backward_call *bw, opd_backward_fn backward);

