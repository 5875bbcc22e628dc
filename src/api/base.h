//----------------------------------------------------------------------------------------------------------------------
//  >>api:base       results, errors, log, memory
//----------------------------------------------------------------------------------------------------------------------

typedef struct opd_tensor opd_tensor;
typedef struct opd_op opd_op;
typedef struct opd_schema opd_schema;
typedef struct opd_library opd_library;
typedef struct opd_overloads opd_overloads;
typedef struct opd_call opd_call;
typedef struct opd_node opd_node;
typedef struct opd_backward_call opd_backward_call;
typedef struct opd_jvp_call opd_jvp_call;
typedef struct opd_context opd_context;
typedef struct opd_generator opd_generator;
/* Gives a user pointer back.  Callbacks that compute or do something take their user pointer first; those that are told
   of something (a gradient, a saved tensor, an event, memory) take it last, behind that. */
typedef void (*opd_destroy)(void *user);
typedef void (*opd_deleter)(void *data, void *user);

/* What kind of mistake a pending error is. */
typedef enum opd_code {
    OPD_OK = 0,
    OPD_ERROR_MEMORY,            /* an allocation failed */
    OPD_ERROR_SCHEMA,            /* text that is no schema */
    OPD_ERROR_REGISTER,          /* a registration that is not allowed */
    OPD_ERROR_NOT_FOUND,         /* no such operator, key, library */
    OPD_ERROR_ARGUMENT,          /* count, kind or value of an argument */
    OPD_ERROR_SHAPE,             /* sizes that do not fit */
    OPD_ERROR_DTYPE,             /* a dtype that does not fit */
    OPD_ERROR_INDEX,             /* index, dimension or target out of range */
    OPD_ERROR_NO_KERNEL,         /* nothing registered for the keys of this call */
    OPD_ERROR_KERNEL,            /* a kernel broke the calling convention */
    OPD_ERROR_AUTOGRAD,          /* the tape refuses */
    OPD_ERROR_USER,              /* recorded by opd_fail in code that is not ours */
    OPD_ERROR_FILE               /* a file that cannot be read or written, or is not what it should be */
} opd_code;

/* True when no error is pending on this thread.  While one is pending every operator call and backward on the thread
   does nothing and fails; queries, releases and scope ends still work.  What fails leaves nothing behind: where its
   results would be is NULL (None in arrays of values). */
OPD_API bool opd_ok(void);
OPD_API opd_code opd_error_code(void);
/* The pending error's text: operator, argument, what was expected.  "" when there is none.  The text belongs to
   the thread and stays until opd_error_clear or the next error. */
OPD_API const char *opd_error_message(void);
OPD_API void opd_error_clear(void);
/* Records an error (the first one sticks) and returns -1, so that a kernel can `return opd_fail(...)`.  The name
   of the operator whose kernel is running is put in front of the text. */
OPD_API_OPEN int opd_fail(opd_code code, const char *format, ...) OPD_PRINTF_LIKE(2, 3);
/* TORCH_CHECK for whatever returns 0 or -1, as kernels and formulas do: where cond does not hold it returns -1 with
   that error.  OPD_CHECK(opd_ndim(x) == 2, "x must be a matrix, not %d-dimensional", opd_ndim(x)); */
#define OPD_CHECK(cond, ...) do { if (!(cond)) { return opd_fail(OPD_ERROR_ARGUMENT, __VA_ARGS__); } } while (0)
/* Lets code try something: `int m = opd_error_mark(); ...; opd_error_rewind(m);` forgets an error recorded since
   the mark and returns its code (OPD_OK when there was none).  An error already pending at the mark stays. */
OPD_API int opd_error_mark(void);
OPD_API opd_code opd_error_rewind(int mark);
/* Reports a pending error through the log and returns 1, or returns 0.  Closes all scopes of the thread; gives back
   what closed libraries left behind (opd_library_close).
   The last line of main: `return opd_finish();`. */
OPD_API int opd_finish(void);

/* Log function: errors nobody looked at (is_error 1), warnings (0), what $OPD_VERBOSE shows (-1).  Default: one line to
   stderr.  NULL restores it. */
typedef void (*opd_log_fn)(void *user, int is_error, const char *text);
OPD_API void opd_log_set(opd_log_fn fn, void *user);
OPD_API_OPEN void opd_warn(const char *format, ...) OPD_PRINTF_LIKE(1, 2);

/* Bytes, of all threads.  live: handed out, as asked for; cached: freed and kept for reuse, also by graphs for their
   next run (until they are freed); peak: largest live since reset. */
typedef struct opd_memory { int64_t live, cached, peak, allocations; } opd_memory;
OPD_API opd_memory opd_memory_stats(void);
OPD_API void opd_memory_reset_peak(void);
/* Gives the calling thread's cached blocks and the shared ones back to the allocator. */
OPD_API void opd_memory_trim(void);
/* For tests: allocation number `count` from now on fails (1: the next), and with `forever` all after it; 0 ends it.
   Returns how many allocations there have been since the last call. */
OPD_API int64_t opd_memory_fail_at(int64_t count, bool forever);

/* Number of threads that kernels may use, the caller's included; 0 restores the default (the number of cores, or
   $OPD_NUM_THREADS).  Results do not depend on it. */
OPD_API void opd_threads_set(int count);
OPD_API int opd_threads(void);

