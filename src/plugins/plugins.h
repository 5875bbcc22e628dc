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
#include <sys/utime.h>
#define opdi_dlclose(handle) ((void)FreeLibrary((opdi_windows_library)(handle)))
#define opdi_dlsym(handle, name) ((void *)(uintptr_t)GetProcAddress((opdi_windows_library)(handle), name))
#else
#define opdi_dlclose(handle) ((void)(handle))
#endif

//== instruction sets ==================================================================================================

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_CPUID
enum { OPDI_PROCESSOR_WORDS = 8 };
#if defined(OPDI_SPAWNS) && defined(__LP64__)
#define OPDI_READS_CODE          /* the instructions of a library are read before it is loaded */
#endif
#endif

//== compiling =========================================================================================================

#if !defined(OPD_NO_PLUGINS)
#define OPDI_COMPILES            /* C can be compiled at run time */
#define OPDI_PATH 1024           /* the longest path, with its final 0 */
#if defined(_WIN32)
#define OPDI_LIBRARY_ENDING ".dll"
#define OPDI_PIC ""
#define OPDI_SHARED "-shared -static"
#define OPDI_ESCAPED " #:"                        /* after \ in the list of files that a compiler has read */
#define OPDI_BINARY _O_BINARY
#else
#define OPDI_LIBRARY_ENDING ".so"
#define OPDI_PIC " -fPIC"
#define OPDI_SHARED "-shared"
#define OPDI_ESCAPED " #:\\"
#define OPDI_BINARY 0
#endif
/* A file in the cache: its name, size, and the time when it was last used. */
typedef struct opdi_cached { int64_t bytes, used; char name[128]; } opdi_cached;
/* The languages of files that are compiled at run time.  The compiler of the last one that occurs is the linker. */
typedef enum opdi_language { OPDI_LANGUAGE_C, OPDI_LANGUAGE_CXX, OPDI_LANGUAGE_CUDA } opdi_language;
/* A compilation: the files to compile, folders and flags. */
typedef struct opdi_build {
    const char *what, *name, *flags;
    const char *const *files;
    int language;                                             /* an opdi_language, the last that a file has */
    char dir[OPDI_PATH], tmp[OPDI_PATH], stem[OPDI_PATH];     /* stem: <dir>/<name>-<key> */
    char include[OPDI_PATH];                                  /* folder of opdispatch.h, or "" (`hint` tells why) */
    const char *hint;
    bool known, opened;                                       /* known: the result is in the cache; opened: the folder
                                                                 `tmp` was made */
    char out[OPDI_PATH];                                      /* the path of the result */
    const char **texts;                                       /* the files of texts that are compiled, or NULL */
    size_t texts_bytes;
} opdi_build;
/* A text that is compiled at the same time as another one.  `source` is one string with its final 0. */
typedef struct opdi_build_also { const char *name, *flags; opdi_string source; } opdi_build_also;
#endif

//== code addresses ====================================================================================================

typedef void (*opdi_any_fn)(void);
#define OPDI_PLACE 256                            /* bytes of the text of a place, with its final 0 */

#include "plugins.prototypes.h"
#endif

