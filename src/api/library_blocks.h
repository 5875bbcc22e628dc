//----------------------------------------------------------------------------------------------------------------------
//  >>api:plug       library blocks
//----------------------------------------------------------------------------------------------------------------------

/* What OPD_LIBRARY leaves behind: linked into a list at load, run at the first use of the dispatcher (a plug-in's:
   before opd_library_load returns). */
typedef struct opd_block {
    void (*run)(opd_library *lib);
    opd_library_kind kind;
    const char *ns, *key, *file;
    int line;
    opd_library *library;        /* filled when it has run */
    struct opd_block *next;
    int linked;
} opd_block;
/* Links a block (any thread, allocates nothing, harmless when repeated). */
OPD_API void opd_block_link(opd_block *block);

