//----------------------------------------------------------------------------------------------------------------------
//  >>api:limits     files that you do not trust: no machine code from files, interruptions, limits (may change)
//----------------------------------------------------------------------------------------------------------------------

/* Forbids machine code from files, until the process ends.  Afterwards, each function that would load or compile code
   fails with OPD_ERROR_FORBIDDEN: opd_plugin_load, opd_compile_and_load, opd_compile_and_load_inline,
   opd_graph_compile, opd_program_compile, opd_aoti_load and opd_extension_load.  Nothing of the file is mapped, no
   compiler is started, and the cache of compiled code is not used.  Code that was loaded before stays, but an
   opd_compiled compiles no further kinds of inputs.  OPD_NO_CODE=1 in the environment when the process first uses the
   library forbids code, too.  Nothing takes this back.  Any thread may call this function. */
OPD_NEW void opd_code_forbid(void);
/* Returns true if code from files is forbidden.  Then also sets an error that begins with `who`, unless who is NULL.
   Plug-ins that load libraries themselves first call this function. */
OPD_NEW bool opd_code_forbidden(const char *who);

/* Ends what runs, on all threads: each run of a graph, script, exported program or compiled model, each opd_graph_fold,
   and each backward fails with OPD_ERROR_INTERRUPTED before its next operator or node.  Runs that begin later fail,
   too, until the program calls opd_interrupt_clear: so it does not matter if the interruption arrives between two runs.
   An operator that is running is finished first, even if it waits for other ranks of a process group.  Values and
   gradients are freed as after any other error, objects stay usable, and runs can be repeated; a backward can be
   repeated if it keeps its graph (retain_graph).  Gradients that a backward has already added to leaves stay, and so
   do writes into tensors.  Calls of single operators are not interrupted.  Any thread may call this function, and so
   may a signal handler:
       static void stop(int signal) { (void)signal; opd_interrupt(); }
       signal(SIGINT, stop); */
OPD_NEW void opd_interrupt(void);
/* Ends the effect of opd_interrupt.  Call this function when the interrupted runs have failed, if the program is to
   continue. */
OPD_NEW void opd_interrupt_clear(void);
/* Returns true and sets an error if a run on this thread should end: after opd_interrupt, or because the seconds of
   opd_limits_set are over.  Kernels and callbacks with long loops may ask: `if (opd_interrupted()) { return -1; }`. */
OPD_NEW bool opd_interrupted(void);

/* Limits for what a thread does, such as loading a file that is not trusted, and running it.  0 means that there is no
   limit. */
typedef struct opd_limits {
    double seconds;              /* the time after which runs, reading and compiling end, with OPD_ERROR_LIMIT */
    int64_t bytes;               /* how much the memory that this thread has allocated and not freed may grow; then an
                                    allocation fails, with OPD_ERROR_MEMORY.  Mapped files and the memory of devices do
                                    not count */
    int64_t nodes;               /* the number of values of files, parts of scripts and nodes of graphs that are made;
                                    then reading and compiling fail, with OPD_ERROR_LIMIT */
    int depth;                   /* how deep files may be nested: the smaller one of this number and the number that
                                    the file's format has in any case */
} opd_limits;
/* Sets the limits of the calling thread.  They count from this call on, for everything that the thread does, until the
   next call of this function.  NULL takes all limits away:
       const opd_limits limits = {.seconds = 2, .bytes = 1 << 30, .nodes = 1000000, .depth = 50};
       opd_limits_set(&limits);
       opd_script *script = opd_script_load(path);
       ...
       opd_limits_set(NULL);
   Memory that kernels allocate on other threads is not counted.  Limits do not count the time and memory of a compiler
   that opd_compile_and_load or opd_graph_compile starts.  Returns 0. */
OPD_NEW int opd_limits_set(const opd_limits *limits);
/* Returns what is left of the limits of the calling thread; 0 for each limit that is not set.  Pass the result to
   opd_limits_set to go on with these limits after setting others. */
OPD_NEW opd_limits opd_limits_left(void);

