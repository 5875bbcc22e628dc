//----------------------------------------------------------------------------------------------------------------------
//  >>plugins_h    libraries of operators and growing strings: types for several files
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_PLUGINS_H)
#define OPDI_PLUGINS_H
#include "../tensor/tensor.h"

//== loading ===========================================================================================================

#if defined(OPDI_CORE)
/* A string that grows.  If `failed` is set, memory has run out and an error is pending. */
typedef struct opdi_string { char *data; size_t length, cap; bool failed; } opdi_string;
#if defined(OPD_NO_PLUGINS)
#else
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
#endif
#endif

//== compiling =========================================================================================================

#if defined(OPDI_CORE)
#if !defined(OPD_NO_PLUGINS)
#define OPDI_PATH 1024
#endif
#endif

//== code addresses ====================================================================================================

#if defined(OPDI_CORE)
typedef void (*opdi_any_fn)(void);
#define OPDI_PLACE 256                            /* in bytes, with its final 0 */
#endif

#include "plugins.prototypes.h"
#endif

