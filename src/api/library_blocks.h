//----------------------------------------------------------------------------------------------------------------------
//  >>api:plug       library blocks
//----------------------------------------------------------------------------------------------------------------------

/* A block of registrations, which OPD_LIBRARY defines.  Blocks are linked into a list when the program is loaded, and
   run at the first use of the dispatcher.  The blocks of a plug-in run before opd_plugin_load returns. */
typedef struct opd_block {
    void (*run)(opd_library *lib);
    opd_library_kind kind;
    const char *ns, *key, *file;
    int line;
    opd_library *library;        /* set when the block has run */
    struct opd_block *next;
    int linked;
} opd_block;
/* Links a block into the list.  Any thread may call this.  Allocates no memory.  Linking a block a second time has no
   effect. */
OPD_API void opdi_block_link(opd_block *block);

