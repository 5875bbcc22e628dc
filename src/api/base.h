//----------------------------------------------------------------------------------------------------------------------
//  >>api:base       results, errors, log, memory
//----------------------------------------------------------------------------------------------------------------------

typedef struct opd_tensor opd_tensor;
typedef struct opd_op opd_op;
typedef struct opd_schema opd_schema;
typedef struct opd_library opd_library;
typedef struct opd_overloads opd_overloads;
typedef struct opd_kernel_handle opd_kernel_handle;
typedef struct opd_call opd_call;
typedef struct opd_node opd_node;
typedef struct opd_backward_call opd_backward_call;
typedef struct opd_jvp_call opd_jvp_call;
typedef struct opd_context opd_context;
typedef struct opd_generator opd_generator;
/* Frees a user pointer.  Callbacks that compute or do something have their user pointer as the first parameter.
   Callbacks that are notified of something (a gradient, a saved tensor, an event, memory) have it as the last one. */
typedef void (*opd_destroy)(void *user);
/* Frees the memory `data`, over which a tensor or file was made.  `user` is the pointer that was passed together with
   the deleter. */
typedef void (*opd_deleter)(void *data, void *user);

/* The kind of a pending error. */
typedef enum opd_code {
    OPD_OK = 0,                  /* no error is pending */
    OPD_ERROR_MEMORY,            /* an allocation failed, or the thread's stack is too small */
    OPD_ERROR_SCHEMA,            /* text that is not a valid schema */
    OPD_ERROR_REGISTER,          /* a registration that is not allowed */
    OPD_ERROR_NOT_FOUND,         /* an operator, key or library that does not exist */
    OPD_ERROR_ARGUMENT,          /* an argument has a wrong kind or value, or the number of arguments is wrong */
    OPD_ERROR_SHAPE,             /* sizes that do not fit the operator or each other */
    OPD_ERROR_DTYPE,             /* a dtype that the operator does not accept */
    OPD_ERROR_INDEX,             /* an index, dimension or target is out of range */
    OPD_ERROR_NO_KERNEL,         /* no kernel is registered for the keys of this call */
    OPD_ERROR_KERNEL,            /* a kernel broke the calling convention */
    OPD_ERROR_AUTOGRAD,          /* autograd cannot record or differentiate the call */
    OPD_ERROR_USER,              /* recorded by opd_fail in code outside of this library */
    OPD_ERROR_FILE,              /* a file that cannot be read or written, or has wrong contents */
    OPD_ERROR_FORBIDDEN,         /* code from files is forbidden (opd_code_forbid) */
    OPD_ERROR_INTERRUPTED,       /* a run was interrupted (opd_interrupt) */
    OPD_ERROR_LIMIT              /* a limit of opd_limits_set was reached */
} opd_code;

/* Returns true if no error is pending on this thread.  While an error is pending, each operator call and backward on
   the thread does nothing and fails.  Queries, releases and scope ends still work.  The results of a failed call are
   NULL (None in arrays of values). */
OPD_API bool opd_ok(void);
/* Returns the kind of the pending error; OPD_OK if there is none. */
OPD_API opd_code opd_error_code(void);
/* Returns the text of the pending error, or "" if there is none.  The text names the operator and the argument, and
   says what was expected.  The text belongs to the thread and stays valid until opd_error_clear or the next error. */
OPD_API const char *opd_error_message(void);
/* Forgets the pending error of this thread. */
OPD_API void opd_error_clear(void);
/* Records an error with a formatted text and returns -1, so that a kernel can `return opd_fail(...)`.  If an error is
   pending already, that error stays.  The name of the operator whose kernel is running is put in front of the text. */
OPDI_API_OPEN int opd_fail(opd_code code, const char *format, ...) OPD_PRINTF_LIKE(2, 3);
/* Returns -1 with an error if cond is false (TORCH_CHECK).  Use it in functions that return 0 or -1, such as kernels
   and backward functions: OPD_CHECK(opd_ndim(x) == 2, "x must be a matrix, not %d-dimensional", opd_ndim(x)); */
#define OPD_CHECK(cond, ...) do { if (!(cond)) { return opd_fail(OPD_ERROR_ARGUMENT, __VA_ARGS__); } } while (0)
/* Returns a mark of this thread's error state.  Code can then call functions that may fail, and pass the mark to
   opd_error_rewind, which forgets their error: `int m = opd_error_mark(); ...; opd_error_rewind(m);` */
OPD_API int opd_error_mark(void);
/* Forgets an error that was recorded since the mark, and returns its code; OPD_OK if there was none.  An error that was
   already pending at the mark stays. */
OPD_API opd_code opd_error_rewind(int mark);
/* Ends a program.  If an error is pending, writes it to the log and returns 1; else returns 0.  Closes all scopes of
   the thread, and frees memory that closed libraries left behind (opd_library_close).  If the program has kept tensors
   and not released them, writes a warning: their number, their memory, and the places where they were kept (see
   opd_kept_list).  The warning does not change the result.
   The last line of main: `return opd_finish();`. */
OPD_API int opd_finish(void);

/* A log function, called for each message.  is_error is 1 for an error that the program did not handle, 0 for a
   warning, -1 for messages that $OPD_VERBOSE or the dispatch trace asks for. */
typedef void (*opd_log_fn)(void *user, int is_error, const char *text);
/* Sets the log function.  NULL restores the default, which writes the text to stderr, with '?' instead of control
   characters in errors and warnings.  Returns 0. */
OPD_API int opd_log_set(opd_log_fn fn, void *user);
/* Writes a warning to the log. */
OPDI_API_OPEN void opd_warn(const char *format, ...) OPD_PRINTF_LIKE(1, 2);

/* Memory statistics in bytes, over all threads.  live: bytes that are in use, as they were requested.  cached: bytes
   that were freed and are kept for reuse, see opd_memory_trim; a graph keeps such memory for its next run, until the
   graph is freed.  peak: the largest `live` since the last opd_memory_reset_peak.  allocations: the number of
   allocations. */
typedef struct opd_memory { int64_t live, cached, peak, allocations; } opd_memory;
OPD_API opd_memory opd_memory_stats(void);
/* Sets the peak to the present number of live bytes. */
OPD_API void opd_memory_reset_peak(void);
/* Returns the calling thread's cached blocks and the shared cached blocks to the allocator.  Without this call, the
   library keeps large freed blocks for reuse, but only so many that they and the blocks in use have at most 512 MiB
   more than the largest number of bytes that was in use recently. */
OPD_API void opd_memory_trim(void);
/* For tests: makes the count-th allocation from now on fail (1: the next one).  If `forever` is true, all later
   allocations fail, too.  A count of 0 ends this mode.  Returns the number of allocations since the previous call of
   this function. */
OPD_API int64_t opd_memory_fail_at(int64_t count, bool forever);

/* Sets the number of threads that kernels may use, the caller's included.  0 restores the default: the number of cores,
   or $OPD_NUM_THREADS.  Results do not depend on the number.  Returns the previous number.
   Any thread may call the library, but needs a stack of 256 KB.  On a thread with a smaller stack, calls for which too
   little is left fail with OPD_ERROR_MEMORY.  The size of the stack is known on Linux, macOS and Windows, but not if
   the program itself changes to another stack, as coroutines do. */
OPD_API int opd_threads_set(int count);
/* Returns the number of threads that kernels may use. */
OPD_API int opd_threads(void);
/* Switches the mode of same bits on or off for the calling thread, and returns the previous setting.  In this mode,
   results have the same bits on every processor with AVX2, with or without AVX-512, and in programs that are compiled
   with OPD_NO_SIMD or for processors without vector kernels; and they do not depend on the batch: a row of a product,
   an image of a convolution, or a query of attention gets the bits that it gets alone.  (Also without the mode, results
   do not depend on the number of threads.)  Kernels use AVX2 at most, and each element of a product is summed up in one
   order.  Compiled graphs have the bits of uncompiled ones: their code calls each operator that C code would round in
   another way, and is compiled again for the mode.  The mode covers the work that this thread divides among threads,
   but no other threads.  New threads begin with the mode off, or on if the environment has OPD_SAME_BITS=1.  Results
   may differ from those without the mode, by rounding.  OPD_CPU_LEVEL does not matter.  If
   the processor has no AVX2 and the program is compiled without OPD_NO_SIMD, or if it is compiled without optimisation,
   the bits are others, and a warning says so.  The guide's chapter "The same bits" says what is outside. */
OPD_NEW bool opd_same_bits_set(bool same);
/* Returns whether the calling thread is in the mode of same bits. */
OPD_NEW bool opd_same_bits(void);

