//----------------------------------------------------------------------------------------------------------------------
//  >>api:autocast   mixed precision: regions, policies, the cache of cast weights (may change)
//----------------------------------------------------------------------------------------------------------------------

/* The state that opd_autocast_begin returns and opd_autocast_end takes. */
typedef struct opd_autocast_region { uint16_t was; bool was_on, open; } opd_autocast_region;
/* Begins a region of this thread in which autocast chooses the dtypes of operators (torch.autocast).  The field
   `autocast` of an operator descriptor says how autocast treats the operator: matrix products and convolutions run in
   `dtype`, and operators that need a large range run in float32.  Floating arguments on the device are cast
   differentiably, except float64 arguments.  Autocast does not change in-place and out= forms.  Returns the region, for
   opd_autocast_end.  As a block: OPD_AUTOCAST(OPD_CPU) { }, OPD_AUTOCAST_AS(device, dtype, enabled, cache) { }.
   With dtype OPD_DTYPE_NONE the region takes the dtype of the enclosing region.  The outermost region takes the
   device's default, which is bfloat16 on CPU, XLA and HPU, else float16.  If `enabled` is false, autocast is off
   inside.  If cache is 1, casts of weights (float32 leaves that require grad) are kept until the outermost region ends.
   If cache is 0, casts of weights are not kept.  If cache is -1, the setting of the enclosing region stays.  Regions
   nest, and each device has its own regions.
   If the device has no autocast, or is one of PrivateUse1 to 3 and not registered, sets an error and begins no region
   (`open` is false).  If another device (such as CUDA) is not registered, or if the device does not support dtype,
   gives a warning and begins a region in which autocast is off. */
OPD_NEW opd_autocast_region opd_autocast_begin(opd_backend device, opd_scalar_type dtype, bool enabled, int cache);
/* Ends a region: restores the autocast state from before the region.  The end of the outermost region clears the cache.
   A second call does nothing.  Works while an error is pending.  If a kernel leaves a region open, the region ends when
   the kernel returns.  To carry regions to another thread, use opd_dispatch_state. */
OPD_NEW void opd_autocast_end(opd_autocast_region *region);
/* Returns true if autocast is on for a device (torch.is_autocast_enabled).  Returns false inside an operator that an
   autocast kernel calls. */
OPD_NEW bool opd_autocast_enabled(opd_backend device);
/* Returns the dtype of autocast for a device (torch.get_autocast_dtype); OPD_DTYPE_NONE if the device has none. */
OPD_NEW opd_scalar_type opd_autocast_dtype(opd_backend device);
/* Returns true if casts of weights are kept in the cache now. */
OPD_NEW bool opd_autocast_cache_enabled(void);
/* Frees all cast weights in the cache, of all threads (torch.clear_autocast_cache). */
OPD_NEW void opd_autocast_cache_clear(void);
/* Declares the dtypes that regions of a registered backend may have, instead of float16 and bfloat16
   (get_amp_supported_dtype).  The declaration is permanent.  Any thread may call this function.  Returns 0, or -1 with
   an error. */
OPD_NEW int opd_autocast_support(opd_backend device, const opd_scalar_type *dtypes, int count);

/* Gives an operator an autocast policy for a device.  The operator may be defined before or after this call.  The
   policy becomes a kernel of this library at the device's autocast key.  With device OPD_BACKEND_COUNT, the policy is
   for all devices.  Returns 0.  On failure, changes nothing and returns -1 with an error.  Follows
   torch.library.register_autocast. */
OPD_NEW int opd_autocast_register(opd_library *lib, const char *name, opd_backend device, opd_autocast policy);
/* Casts a tensor to dtype, for a hand-written kernel at an autocast key (AutocastCPU, AutocastCUDA, ...).  The kernel
   excludes its key and calls its operator again (examples/autocast_wrappers.c).  Casts of weights go through the
   cache.  Returns a tensor of the innermost scope, or `tensor` itself if it has that dtype, is float64 or is not a
   floating tensor.  Returns NULL if tensor is NULL or, with an error, on failure.  Follows
   at::autocast::cached_cast. */
OPD_NEW opd_tensor *opd_autocast_cast(opd_scalar_type dtype, opd_tensor *tensor);
/* Returns the widest of `dtype` and the dtypes of the tensors, for a hand-written kernel at an autocast key.  NULLs and
   float64 tensors do not count.  If a dtype is neither float32 nor the device's autocast dtype, returns OPD_DTYPE_NONE
   with an error.  Follows at::autocast::promote_type. */
OPD_NEW opd_scalar_type opd_autocast_promote(opd_scalar_type dtype, opd_tensor *const *tensors, int count);

/* Runs `forward`, the forward of a custom function, under autocast (torch.amp.custom_fwd).  Call opd_custom_fwd in the
   field `forward` of an opd_autograd_function.  With cast_inputs OPD_DTYPE_NONE, `forward` runs in the present autocast
   state.  If cast_inputs is a dtype and a region of the device is on, floating inputs on the device, except float64,
   are cast to this dtype, and `forward` runs with autocast off.  Outside a region nothing is cast.  Returns 0, or not 0
   after an error. */
OPD_NEW int opd_custom_fwd(opd_context *ctx, opd_backend device, opd_scalar_type cast_inputs, opd_setup_fn forward);
/* Runs `backward`, the backward of a custom function, in the autocast state in which its forward ran: on or off, and
   the dtype (torch.amp.custom_bwd).  Returns 0, or not 0 after an error. */
OPD_NEW int opd_custom_bwd(opd_backward_call *bw, opd_backward_fn backward);

