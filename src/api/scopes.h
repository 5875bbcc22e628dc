//----------------------------------------------------------------------------------------------------------------------
//  >>api:scopes     ownership of tensors
//----------------------------------------------------------------------------------------------------------------------

/* Opens a scope on this thread and returns it.  A scope is a mark in the thread's stack of tensor handles.  Closing a
   scope releases the tensors that were created since it was opened, and closes all scopes that were opened after it. */
typedef struct opd_scope { int64_t mark, outer; int32_t depth, open; } opd_scope;
OPD_API opd_scope opd_scope_open(void);
/* Opens a scope with a name for error messages.  place is the name: "file:line", as OPD_SCOPE and OPD_SCOPED pass it,
   or any text that lives as long as the program.  opd_scope_close closes a scope. */
OPD_API opd_scope opd_scope_open_at(const char *place);
OPD_API void opd_scope_close(opd_scope *scope);
/* Moves a tensor from the innermost scope to the scope around that scope, and returns the tensor. */
OPD_API opd_tensor *opd_scope_return(opd_tensor *tensor);
/* opd_scope_stats returns the number of open scopes and of handles on this thread. */
typedef struct opd_scope_info { int depth; int64_t handles; } opd_scope_info;
OPD_API opd_scope_info opd_scope_stats(void);
/* opd_keep keeps a tensor alive after its scope ends, and returns the tensor.  opd_release releases it again.  Both
   accept NULL, and any thread may call them.  A function that gets a freed tensor fails with an error that names the
   ended scope.  The error is certain until the tensor's handle is used again, which happens at the earliest after its
   thread has freed 16 more tensors.  The address sanitizer also finds later uses. */
OPD_API opd_tensor *opd_keep(opd_tensor *tensor);
OPD_API void opd_release(opd_tensor *tensor);
/* Sets *handle to tensor, keeps tensor, and releases the tensor that was in *handle.  Returns tensor.  Serves to carry
   a value through a loop. */
OPD_API opd_tensor *opd_assign(opd_tensor **handle, opd_tensor *tensor);
/* opd_keep_at and opd_assign_at are opd_keep and opd_assign with the place of the call, for opd_kept_list and
   opd_finish.  place is "file:line", or any text that lives as long as the program or plug-in.  opd_keep(t) and
   opd_assign(&h, t) are macros that pass their own place.  Without brackets behind them, the names mean the functions,
   which pass no place: opd_finish does not warn of their tensors, because another language may release them later. */
OPD_API opd_tensor *opd_keep_at(opd_tensor *tensor, const char *place);
OPD_API opd_tensor *opd_assign_at(opd_tensor **handle, opd_tensor *tensor, const char *place);
/* A tensor that was kept, by opd_keep or opd_assign, more often than it was released. */
typedef struct opd_kept {
    opd_tensor *tensor;          /* borrowed: the program still has to release it */
    const char *place;           /* "file:line" where it was kept last; "" if unknown */
    int64_t count;               /* how often it was kept without being released */
    int64_t bytes;               /* its memory; 0 if an earlier tensor of the list shares this memory */
} opd_kept;
/* Lists the tensors that the program keeps, those with the most memory first.  Writes the first cap of them to list and
   returns the number of all.  During the call, no other thread may keep or release tensors.  If memory runs out,
   returns 0 with an error.  opd_finish warns of the tensors that have a place. */
OPD_API size_t opd_kept_list(opd_kept *list, size_t cap);

