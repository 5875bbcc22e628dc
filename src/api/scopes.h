//----------------------------------------------------------------------------------------------------------------------
//  >>api:scopes     who owns what
//----------------------------------------------------------------------------------------------------------------------

/* A scope is a mark in the thread's stack of handles; closing it releases what was made since, and closes scopes
   opened after it.  Open returns the mark. */
typedef struct opd_scope { int64_t mark, outer; int32_t depth, open; } opd_scope;
OPD_API opd_scope opd_scope_open(void);
/* opd_scope_open with a name that errors give the scope: "file:line", as OPD_SCOPE and OPD_SCOPED say, or any text that
   stays. */
OPD_API opd_scope opd_scope_open_at(const char *place);
OPD_API void opd_scope_close(opd_scope *scope);
/* Moves a tensor of the innermost scope to the one around it; returns it. */
OPD_API opd_tensor *opd_scope_return(opd_tensor *tensor);
typedef struct opd_scope_info { int depth; int64_t handles; } opd_scope_info;
OPD_API opd_scope_info opd_scope_stats(void);
/* Hold a tensor across scopes, and let it go.  NULL is allowed.  Any thread.
   A tensor that is used when it is gone is an error that says which scope has ended, in every function that takes one,
   until its handle is given out again: not before its thread has let go of 32 others.  Then nobody knows; the address
   sanitizer finds those, too. */
OPD_API opd_tensor *opd_keep(opd_tensor *tensor);
OPD_API void opd_release(opd_tensor *tensor);
/* *handle = tensor, which is kept, while the old one is released: the way to carry a value through a loop. */
OPD_API opd_tensor *opd_assign(opd_tensor **handle, opd_tensor *tensor);

