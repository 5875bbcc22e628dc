//----------------------------------------------------------------------------------------------------------------------
//  >>aoti_h       compiled models and extensions: types that several files use
//
//  To load a library, its file is copied into a file in memory (memfd, or a temporary file that is deleted afterwards).
//  In the copy, the dependencies on libtorch are replaced by a dependency on a small library of stubs, which is also
//  made in memory.  It has one stub for each function that the copy imports from PyTorch.  In the copy and in the
//  stubs, the first letter of these functions' names is changed, so that the names clash neither with a libtorch that
//  the process may have loaded nor with other models.  All this code uses only public functions of opdispatch.h, so it
//  may be compiled in another file than the implementation.
//----------------------------------------------------------------------------------------------------------------------

#include "../ops/ops.h"

#if defined(OPD_AOTI) && !defined(OPDI_AOTI)
#define OPDI_AOTI
#if !defined(OPDI_AOTI_DECLARED)
#error "with OPD_STATIC, and in a plug-in, define OPD_AOTI above the first include of opdispatch.h"
#endif
#if defined(OPDISPATCH_PART) && defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"     /* see platform.h */
#define OPDI_AOTI_QUIET
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(OPDI_INTERNAL)
#define OPDI_INTERNAL static
#endif
#undef opd_keep                   /* calls the functions: its tensors are not kept by the program, see >>api:places */
#undef opd_assign

#if defined(__linux__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(OPD_NO_PLUGINS)
#define OPDI_AOTI_THERE
#define OPDI_AOTI_HERE                            /* undefined again after the last file of this section */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#if !defined(__cplusplus)                         /* declarations that strict C leaves out */
extern long syscall(long number, ...);
extern int mkstemp(char *path);
extern char *realpath(const char *path, char *whole);
#endif

#if defined(__TINYC__)                            /* programs compiled by tcc have no threads */
#define OPDI_AOTI_THREAD
#define OPDI_AOTI_NEXT(count) (++(count))
#define OPDI_AOTI_LESS(count) (--(count))
#else
#define OPDI_AOTI_THREAD __thread
#define OPDI_AOTI_NEXT(count) __atomic_add_fetch(&(count), 1, __ATOMIC_RELAXED)
#define OPDI_AOTI_LESS(count) __atomic_sub_fetch(&(count), 1, __ATOMIC_ACQ_REL)
#endif

//== exported functions of compiled models, and their handles of tensors ===============================================

typedef void (*opdi_aoti_fn)(void);
/* The functions that a model exports, as indices in opd_aoti.functions and opdi_aoti_exports, which has their names. */
enum {
    OPDI_AOTI_CREATE, OPDI_AOTI_DELETE, OPDI_AOTI_RUN, OPDI_AOTI_NINPUTS, OPDI_AOTI_NOUTPUTS, OPDI_AOTI_INPUT,
    OPDI_AOTI_OUTPUT, OPDI_AOTI_NCONSTANTS, OPDI_AOTI_SYMBOL, OPDI_AOTI_FQN, OPDI_AOTI_DTYPE, OPDI_AOTI_BYTES,
    OPDI_AOTI_FOLDED, OPDI_AOTI_TYPE, OPDI_AOTI_UPDATE, OPDI_AOTI_SHARE, OPDI_AOTI_ENTRIES, OPDI_AOTI_BLOB,
        OPDI_AOTI_BLOB_SIZE,
    OPDI_AOTI_LAST_ERROR, OPDI_AOTI_FUNCTIONS
};
typedef struct opdi_aoti_row opdi_aoti_row;
typedef struct opdi_aoti_range { const char *begin, *end; } opdi_aoti_range;
/* A shared library that was written to a file in memory or in a folder for temporary files. */
typedef struct opdi_aoti_image { int fd; char path[160]; bool temporary; void *handle; } opdi_aoti_image;
struct opd_aoti {
    int32_t refs;               /* the caller has one reference, and each run has one */
    const char *who;             /* for errors: name of the function that loads the model */
    char *path, *name;
    char *names;                 /* names of all models in the package, each with a 0 at its end; "" ends the list */
    opdi_aoti_image image, stubs;
    opdi_aoti_fn functions[OPDI_AOTI_FUNCTIONS];
    void *container;
    opdi_aoti_row **rows;        /* descriptions of operators, to which the stubs point */
    int64_t nrows;
    opd_json *metadata, *nodes;
    opd_tensor *blob;            /* the package's constants as a block of bytes, or NULL */
    char **weight_names;         /* if weights are entries of the package: their names */
    opd_tensor **weights;
    int64_t nweights;
    opdi_aoti_range *ranges;     /* memory that the model has allocated for constants */
    int64_t nranges;
    size_t ninputs, noutputs, nconstants;
    bool extension;              /* true: this is an extension of PyTorch */
    bool empty;                  /* true: the model was compiled without weights, and was not given them yet */
    bool unchecked, exceptions;  /* unchecked: the option of this name; exceptions: true if the model throws C++
                                    exceptions.  If false, the model is written in C, and a failing check leaves it by
                                    longjmp */
};
typedef struct opdi_aoti_handle {
    opd_tensor *tensor;
    bool packed;                 /* true: `tensor` is the unpacked form of a packed weight */
    bool *gone;                  /* set to true when the handle is freed; may be NULL */
} opdi_aoti_handle;

//== operators that are called with the arguments of a C function ======================================================

enum { OPDI_AOTI_ARGS = OPD_MAX_ARGS };
/* The type of a parameter.  kind: 'T' (a tensor), 'O' (a tensor that may be NULL), 'i' (an integer), 'b' (a bool), 'e'
   (the number of a dtype, layout or format), 'd' (a double), 'f' (a float), 's' (a string), 'D' (a device) or 'G' (a
   generator). optional_items: true if the items of the list may be None.  out: true if the parameter is written, and
   given by keyword. */
typedef struct opdi_aoti_param { char kind; bool optional, list, optional_items, out; } opdi_aoti_param;
typedef int (*opdi_aoti_compose)(const opd_value *args, void *const *handles, opd_value *rets);
struct opdi_aoti_row {
    const char *symbol;          /* name of the function that the model imports */
    opd_op *op;                  /* the operator; if it is NULL, `compose` is called instead */
    opdi_aoti_compose compose;
    opdi_aoti_param params[OPDI_AOTI_ARGS];
    int order[OPDI_AOTI_ARGS];   /* the C function's parameter k is params[order[k]] */
    int nparams, nrets;
    char rets[16];               /* kinds of the results: T, i, b or d */
    bool returns;                /* true: results are stored through pointers after the arguments; false for out and
                                    in-place forms */
};

//== oneDNN's operators in PyTorch, vector functions ===================================================================

/* A function that is not an operator of ATen, or that does not have the operator's arguments.  `schema` is a schema or,
   if the arguments are an operator's, only its name.  If `compose` is NULL, the operator that `schema` names is
   called. */
typedef struct opdi_aoti_other { const char *symbol, *schema; opdi_aoti_compose compose; } opdi_aoti_other;
typedef struct opdi_aoti_math {
    const char *name;
    float (*f32)(float x);
    double (*f64)(double x);
    float (*f32_2)(float x, float y);
    double (*f64_2)(double x, double y);
} opdi_aoti_math;
/* The data of the stub of a vector function: the function, the number of elements of a vector, and the size of an
   element in bytes. */
typedef struct opdi_aoti_vector { const opdi_aoti_math *math; int count, element; } opdi_aoti_vector;

//== extensions: values on the stack of a kernel =======================================================================

typedef struct opdi_ext opdi_ext;
typedef void (*opdi_ext_fn)(uint64_t *stack, uint64_t nargs, uint64_t nrets);
/* Runs a kernel that may throw a C++ exception.  Returns the exception, or NULL. */
typedef void *(*opdi_ext_call_fn)(opdi_ext_fn fn, uint64_t *stack, uint64_t nargs, uint64_t nrets);
/* The types of the words on a kernel's stack, from the schema of its operator.  There is one more kind than in
   opdi_aoti_param: S, a Scalar. */
typedef struct opdi_ext_signature {
    opdi_aoti_param args[OPD_MAX_ARGS], rets[OPD_MAX_ARGS];
    int nargs, nrets;
    char unknown[60];            /* a type in the schema that the stable interface does not support */
} opdi_ext_signature;
/* A registration of an extension.  Registrations are collected while the extension's own code runs, and carried out
   afterwards. */
typedef struct opdi_ext_entry {
    struct opdi_ext_entry *next;
    opdi_ext *ext;
    char *text;                  /* a schema, or the name of the operator that the kernel is for */
    opdi_ext_fn fn;              /* the kernel; NULL: `text` is a schema */
    uint32_t tags;
    bool builtin;                /* true: opdispatch.h already defines the operator of the schema */
    opdi_ext_signature *signature;                /* types of the kernel's arguments and results; NULL: not read yet */
} opdi_ext_entry;
/* A request of an extension for a library of operators, with the registrations in it.  `library` is NULL until the
   registrations are carried out. */
typedef struct opdi_ext_library {
    struct opdi_ext_library *next;
    opdi_ext *ext;
    opd_library_kind kind;
    char *ns, *key, *file;
    int line;
    opdi_ext_entry *entries;
    opd_library *library;
} opdi_ext_library;
struct opdi_ext {
    opd_aoti model;              /* the extension's path and its two library files */
    opdi_ext *next;
    opdi_ext_library *libraries;
    opd_library *derivatives;    /* registrations that opdispatch adds to those of the extension */
    opdi_ext_call_fn call;
    int operators;
    int64_t holds;               /* number of users of the extension's code: the extension itself while it is loaded,
                                    kernels, and memory that the extension has given to tensors */
    bool committed;
};

//== extensions: their kernels, and the functions that they call =======================================================

#define OPDI_EXT_STRING_REPLACE "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm"

//== functions by name =================================================================================================

/* A PLAIN function is called with the caller's arguments; a THIRD function gets `number` as its third argument; the
   stub of a CONSTANT returns `number`. */
typedef enum opdi_aoti_kind { OPDI_AOTI_PLAIN, OPDI_AOTI_CONSTANT, OPDI_AOTI_THIRD } opdi_aoti_kind;
typedef struct opdi_aoti_symbol {
    const char *name;
    opdi_aoti_kind kind;
    uint64_t number;
    opdi_aoti_fn fn;
} opdi_aoti_symbol;

//== the library of stubs, libraries as files in memory ================================================================

/* A text or file that is being written.  failed: true if memory ran out. */
typedef struct opdi_aoti_bytes { unsigned char *data; size_t length, capacity; bool failed; } opdi_aoti_bytes;
/* A library of stubs while it is made: its code, names and symbols. */
typedef struct opdi_aoti_library {
    opdi_aoti_bytes code, names, symbols;
    uint32_t count;
    size_t call_at, call_size;   /* position and size of the function `.call`, which catches exceptions; 0 if there is
                                    none */
    uint32_t needed[16];         /* positions in `names` of the names of the libraries that this library depends on */
    int nneeded;
} opdi_aoti_library;

//== the model's library: checks, and redirection to the stubs =========================================================

/* The file of a compiled library, and where its ELF tables are. */
typedef struct opdi_aoti_elf {
    opd_aoti *model;
    unsigned char *data;         /* a private copy of the library's file, which is changed */
    size_t size;
    Elf64_Phdr segments[64];
    int nsegments;
    Elf64_Dyn *dynamic;
    size_t ndynamic;
    char *names;
    size_t names_size;
    Elf64_Sym *symbols;
    uint16_t *versions;          /* version of each symbol, or NULL */
    size_t nsymbols;
} opdi_aoti_elf;

/* The state of a thread that loads or runs a model.  If a check fails in a model that is written in C, opdi_aoti_check
   jumps to `out`. */
typedef struct opdi_aoti_frame {
    opd_aoti *model;
    bool loading;                /* true: the model is being loaded, so tensors that are made over memory are
                                    constants */
    jmp_buf *out;
    struct opdi_aoti_frame *outer;
} opdi_aoti_frame;
typedef struct opdi_aoti_c64 { float re, im; } opdi_aoti_c64;
typedef struct opdi_aoti_c128 { double re, im; } opdi_aoti_c128;

/* Functions for the objects to which words on a stack point.  The owner of the objects provides them: this library or,
   if it calls operators of this library, PyTorch. */
typedef struct opdi_ext_side {
    int32_t (*list_new)(size_t capacity, void **out);
    int32_t (*list_size)(void *list, size_t *out);
    int32_t (*list_get)(void *list, size_t i, uint64_t *out);
    int32_t (*list_push)(void *list, uint64_t word);
    int32_t (*list_free)(void *list);
    int32_t (*text_new)(const char *data, size_t length, void **out);
    int32_t (*text_data)(void *text, const char **out);
    int32_t (*text_free)(void *text);
    int32_t (*cell_new)(uint64_t **out);
    int32_t (*cell_free)(uint64_t *cell);
    int32_t (*tensor_free)(void *handle);
    int32_t (*tensor_give)(opd_tensor *tensor, void **out);   /* makes an undefined tensor if `tensor` is NULL */
    opd_tensor *(*tensor_take)(void *handle);
} opdi_ext_side;
/* A handle or text that was taken from a stack, and is kept until the call is over. */
typedef struct opdi_ext_taken {
    struct opdi_ext_taken *next;
    const opdi_ext_side *side;
    void *handle, *text;
    opd_tensor *tensor;          /* the tensor of the handle */
} opdi_ext_taken;
typedef struct opdi_aoti_pair { const char *name; void *handle; } opdi_aoti_pair;
typedef struct opdi_aoti_export { const char *name; bool needed; } opdi_aoti_export;
typedef int32_t (*opdi_aoti_create_fn)(void **container, size_t copies, const char *device, const char *folder);
typedef int32_t (*opdi_aoti_delete_fn)(void *container);
typedef int32_t (*opdi_aoti_run_fn)(void *container, void **inputs, size_t ninputs, void **outputs, size_t noutputs,
                                    void *stream, void *executor);
typedef int32_t (*opdi_aoti_count_fn)(void *container, size_t *count);
typedef int32_t (*opdi_aoti_name_fn)(void *container, size_t i, const char **name);
typedef int32_t (*opdi_aoti_dtype_fn)(void *container, size_t i, int32_t *dtype);
typedef int32_t (*opdi_aoti_bytes_fn)(void *container, size_t i, size_t *bytes);
typedef int32_t (*opdi_aoti_flag_fn)(void *container, size_t i, bool *flag);
typedef int32_t (*opdi_aoti_pairs_fn)(void *container, const opdi_aoti_pair *pairs, size_t count, bool inactive,
                                      bool all);
typedef int32_t (*opdi_aoti_entries_fn)(void *container, const opdi_aoti_pair **pairs, size_t *count, bool inactive);
typedef int32_t (*opdi_aoti_blob_fn)(void *container, const uint8_t *blob);
typedef int32_t (*opdi_aoti_blob_size_fn)(void *container, uint64_t *bytes);
typedef int32_t (*opdi_aoti_error_fn)(const char **message);
enum { OPDI_AOTI_MATHS = 40 };                     /* number of the vector functions */
/* The functions that throw C++ exceptions, found in a library that models are linked with. */
typedef struct opdi_aoti_throwing {
    void *(*allocate)(size_t size);
    void (*throws)(void *exception, void *type, void (*destroy)(void *));
    void (*construct)(void *exception, const char *text);
    void (*destroy)(void *exception);
    void *type;
} opdi_aoti_throwing;
/* The functions that catch and read C++ exceptions, found in the libraries that extensions are linked with. */
typedef struct opdi_ext_catching {
    void (*set_register)(void *context, int number, uintptr_t value);
    void (*set_place)(void *context, uintptr_t place);
    uintptr_t (*begin)(void *context);
    void *(*caught)(void *exception);
    void (*done)(void);
    void *(*type)(void);
    void *base;                  /* the type_info of std::exception */
} opdi_ext_catching;
/* C++'s new and delete, for memory that this library allocates and an extension frees, or the reverse.  `replace`: see
   opdi_ext_string_replace. */
typedef struct opdi_ext_memory_of_cxx {
    void *(*make)(size_t bytes);
    void (*unmake)(void *memory);
    void *replace;
} opdi_ext_memory_of_cxx;

#if defined(__x86_64__)
enum { OPDI_AOTI_MACHINE = EM_X86_64, OPDI_AOTI_PAGE = 4096 };
#else
enum { OPDI_AOTI_MACHINE = EM_AARCH64, OPDI_AOTI_PAGE = 65536 };
#endif

#include "aoti.prototypes.h"
#else
#define OPDI_AOTI_ELSEWHERE
#endif
#endif /* OPD_AOTI */

