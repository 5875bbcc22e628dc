//----------------------------------------------------------------------------------------------------------------------
//  >>programs_h   exported programs: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_PROGRAMS_H)
#define OPDI_PROGRAMS_H
#include "../tools/tools.h"

//== sizes =============================================================================================================

#if !defined(OPD_NO_PROGRAMS)
#if defined(OPDI_CORE)
/* The source of an input of the graph; `at` is a member of opdi_program_place. */
typedef enum opdi_program_source {
    OPDI_FROM_MODULE,            /* tensor number `at` of the module */
    OPDI_FROM_USER,              /* input number `at` of the user */
    OPDI_FROM_DEVICE,            /* the device of the module */
    OPDI_FROM_NOWHERE            /* None: the input is a token that keeps side effects in order, which is not needed
                                    here */
} opdi_program_source;
/* The destination of an output of the graph; `at` is a member of opdi_program_place. */
typedef enum opdi_program_sink {
    OPDI_TO_USER,                /* result number `at` for the user */
    OPDI_TO_MODULE,              /* written into tensor number `at` of the module */
    OPDI_TO_INPUT,               /* written into input number `at` of the user */
    OPDI_TO_NOWHERE              /* nothing: the output is a token */
} opdi_program_sink;
typedef struct opdi_program_place { int kind; int64_t at; } opdi_program_place;
/* The required size of a dim of an input. */
typedef struct opdi_program_dim {
    int64_t size;                /* the size if `text` is NULL */
    int32_t symbol;              /* number of the symbol if `text` is only a symbol, or -1 */
    const char *text;            /* the expression of the size, or NULL if the size is fixed */
} opdi_program_dim;
/* An input of the user, with the properties that are checked before a run. */
typedef struct opdi_program_input {
    const char *name;
    bool constant;               /* the input must equal `value`, the input's value at export */
    opd_value value;             /* None if `constant` is false */
    int32_t tag;                 /* OPD_TAG_TENSOR, or the tag of a number, string or None */
    opd_scalar_type dtype;       /* its dtype at export; OPD_DTYPE_NONE: a dtype that the library does not know */
    int32_t symbol;              /* if the input is a number: the index of its symbol, or -1 */
    int32_t ndim;
    opdi_program_dim *dims;
} opdi_program_input;
/* A size that varies between runs.  Its value must be at most `most` and, if `least` is greater than 2, at least
   `least`. */
typedef struct opdi_program_symbol { const char *name; int64_t least, most; } opdi_program_symbol;
/* An operator that the program calls, and the number of calls in the text.  `what` is the reason why the operator
   cannot be called, or NULL. */
typedef struct opdi_program_operator { const char *name, *what; int64_t count; } opdi_program_operator;
/* The properties that a tensor of the module had when the program was loaded. */
typedef struct opdi_program_shape {
    const char *name;
    opd_module_kind kind;
    opd_scalar_type dtype;
    int32_t ndim;
    int64_t *sizes;
} opdi_program_shape;
struct opd_program {
    opdi_arena arena;            /* names and tables */
    opd_tensor_file *file;       /* the file that the program was loaded from; saving copies its entries */
    int64_t text;                /* number of the file's entry with the JSON text */
    int64_t major, major_at;     /* major: the format's version; major_at: its position in the text */
    opd_module *module;
    opdi_program_shape *shapes;  /* properties of the module's tensors when it was loaded */
    int32_t nshapes;
    opd_graph *graph;
    const char *name;            /* name of the program in its file */
    const char *path;
    opdi_program_place *from, *to;                /* from: by input of the graph; to: by output of the graph */
    opdi_program_input *inputs;
    const char **outputs;        /* names of the user's outputs */
    opdi_program_symbol *symbols;
    opdi_string operators;       /* opdi_program_operator[] */
    opdi_string graphs;          /* opd_graph *[]: graphs that nodes such as conditions and loops call */
    opdi_string notes;           /* const char *[]: notes for the user */
    const char **names;          /* names of all programs in the file */
    int32_t ninputs, noutputs, nsymbols, nnames;
    opd_device device;           /* at export, the device of the first input that is a tensor */
};
/* The state while a file is read. */
typedef struct opdi_program_reader {
    opd_program *program;
    opd_tensor_file *file;
    opd_tensor_file *weights, *constants;         /* checkpoints with the tensors in older files, or NULL */
    opdi_source source;                           /* the JSON text */
    const char *root;                             /* prefix of the names of the file's entries */
    size_t root_bytes;
    const opd_json *json;
    opd_json *configs[2];                         /* descriptions of weights and of constants, or NULL */
    opd_tensor **storages;                        /* for each entry of the file: a uint8 tensor of its bytes, or NULL */
    bool plain;                  /* true: a file from before torch 2.7, with two checkpoints */
    int depth;
} opdi_program_reader;
/* Values of symbols, with which expressions are evaluated. */
typedef struct opdi_program_sizes {
    const opd_program *program;
    const int64_t *values;
    const bool *bound;
} opdi_program_sizes;
#define OPDI_PROGRAM_SIZE (INT64_C(1) << 40)      /* expressions with larger values are not evaluated */
#endif
#endif

//== control flow ======================================================================================================

#if !defined(OPD_NO_PROGRAMS)
#if defined(OPDI_CORE)
typedef struct opdi_program_region {
    opd_graph *graphs[2];
    bool wants_device[2];
    int nfirst;                  /* loops: number of carried arguments; associative_scan: of sliced arguments */
    int nsliced;
    opd_value modes[4];          /* wrap_with_...: the node's arguments, which describe the mode */
} opdi_program_region;
typedef struct opdi_region_kind {
    opdi_gfunction function;
    opdi_gfunction_run inside;   /* runs the node in the scope that `function` has opened */
    int graphs, modes;           /* graphs: number of arguments that are graphs; modes: number of arguments before
                                    them */
    int lists;                   /* number of argument lists after the graphs; -1: arguments are not in lists */
} opdi_region_kind;
#endif
#endif

//== nodes =============================================================================================================

#if !defined(OPD_NO_PROGRAMS)
#if defined(OPDI_CORE)
/* The state while a graph is read from the JSON text. */
typedef struct opdi_program_graph {
    opd_graph *graph;
    opdi_graph_name *names;      /* [size] hash table with open addressing: values by name */
    int64_t size;
    opdi_gvalue *device;         /* the last input of the graph, which is the module's device; NULL if it is not used */
    int64_t text, metas;         /* positions in the JSON: the graph, and the descriptions of its tensors */
    opdi_gvalue *level;          /* in the graph of a vmap: the vmap's level, otherwise NULL */
    struct opdi_program_graph *outer;             /* in the graph of a vmap: the graph around it, whose values it can
                                                     use */
} opdi_program_graph;
#endif
#endif
#include "programs.prototypes.h"
#endif

