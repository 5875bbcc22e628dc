//----------------------------------------------------------------------------------------------------------------------
//  >>plugins_h    libraries of operators and growing strings: types for several files
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_PLUGINS_H)
#define OPDI_PLUGINS_H
#include "../tensor/tensor.h"

//== loading ===========================================================================================================

/* A string that grows.  If `failed` is set, memory has run out and an error is pending. */
typedef struct opdi_string { char *data; size_t length, cap; bool failed; } opdi_string;
#if defined(OPDI_SPAWNS)
#define opdi_dlclose(handle) ((void)dlclose(handle))
#define opdi_dlsym(handle, name) dlsym(handle, name)
#if UINTPTR_MAX > 0xffffffffu
typedef Elf64_Ehdr opdi_elf;
typedef Elf64_Phdr opdi_elf_segment;
typedef Elf64_Shdr opdi_elf_section;
typedef Elf64_Sym opdi_elf_symbol;
#else
typedef Elf32_Ehdr opdi_elf;
typedef Elf32_Phdr opdi_elf_segment;
typedef Elf32_Shdr opdi_elf_section;
typedef Elf32_Sym opdi_elf_symbol;
#endif
#elif defined(OPDI_DLLS)
#define opdi_dlclose(handle) ((void)FreeLibrary((opdi_windows_library)(handle)))
#define opdi_dlsym(handle, name) ((void *)(uintptr_t)GetProcAddress((opdi_windows_library)(handle), name))
#else
#define opdi_dlclose(handle) ((void)(handle))
#endif
/* A text for errors: why nothing is compiled at run time. */
#if defined(OPD_NO_PLUGINS)
#define OPDI_NO_COMPILER_HERE "this program was built with OPD_NO_PLUGINS"
#else
#define OPDI_NO_COMPILER_HERE "on Windows, nothing is compiled at run time: build a DLL (opd_library_load loads it)"
#endif

//== compiling =========================================================================================================

#if defined(OPDI_SPAWNS)
#define OPDI_PATH 1024
#endif

//== code addresses ====================================================================================================

typedef void (*opdi_any_fn)(void);
#define OPDI_PLACE 256                            /* bytes of the text of a place, with its final 0 */

#include "plugins.prototypes.h"
#endif

