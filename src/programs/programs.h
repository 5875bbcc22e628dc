//----------------------------------------------------------------------------------------------------------------------
//  >>programs_h   exported programs: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_PROGRAMS_H)
#define OPDI_PROGRAMS_H
#include "../tools/tools.h"

//== sizes =============================================================================================================

#if !defined(OPD_NO_PROGRAMS)
#if defined(OPDI_CORE)
/* Where an input of the graph comes from. */
typedef enum opdi_program_source {
    OPDI_FROM_MODULE,            /* the module's tensor number `at` */
    OPDI_FROM_USER,              /* the user's input number `at` */
    OPDI_FROM_DEVICE,            /* the device where the module is */
    OPDI_FROM_NOWHERE            /* None: a token, which only keeps what has effects in order, as any graph does */
} opdi_program_source;
/* Where an output of the graph goes to. */
typedef enum opdi_program_sink {
    OPDI_TO_USER, OPDI_TO_MODULE, OPDI_TO_INPUT,  /* written into the tensor or input number `at` */
    OPDI_TO_NOWHERE                               /* a token */
} opdi_program_sink;
typedef struct opdi_program_place { int kind; int64_t at; } opdi_program_place;
/* What an input's dim must be: `size` where there is no symbol and no expression. */
typedef struct opdi_program_dim {
    int64_t size;
    int32_t symbol;              /* -1: none */
    const char *text;            /* of an expression; NULL: it is none */
} opdi_program_dim;
/* A user's input: what there is to check. */
typedef struct opdi_program_input {
    const char *name;
    bool constant;               /* value is what the program was exported with, and no other will do */
    opd_value value;             /* NONE and not constant: a tensor */
    int32_t tag;                 /* OPD_TAG_TENSOR, or that of a number */
    opd_scalar_type dtype;       /* of a tensor as it was exported; OPD_DTYPE_NONE: one that is not known here */
    int32_t symbol;              /* of a number; -1 */
    int32_t ndim;
    opdi_program_dim *dims;
} opdi_program_input;
/* A size that differs between runs, and between what it may be. */
typedef struct opdi_program_symbol { const char *name; int64_t least, most; } opdi_program_symbol;
/* An operator that the program calls, how often; what: why it cannot be called, NULL: it can. */
typedef struct opdi_program_operator { const char *name, *what; int64_t count; } opdi_program_operator;
/* A tensor of the module as it was loaded. */
typedef struct opdi_program_shape {
    const char *name;
    opd_module_kind kind;
    opd_scalar_type dtype;
    int32_t ndim;
    int64_t *sizes;
} opdi_program_shape;
struct opd_program {
    opdi_arena arena;            /* names and tables */
    opd_tensor_file *file;       /* from which it was loaded: what it says is written again when it is saved */
    int64_t text;                /* the file's entry with the JSON text */
    int64_t major, major_at;     /* the version of its form, and the byte where the text says it */
    opd_module *module;
    opdi_program_shape *shapes;  /* of its tensors */
    int32_t nshapes;
    opd_graph *graph;
    const char *name;            /* of the program in its file */
    const char *path;
    opdi_program_place *from, *to;                /* of the graph's inputs, outputs */
    opdi_program_input *inputs;
    const char **outputs;        /* names of the user's */
    opdi_program_symbol *symbols;
    opdi_string operators;       /* opdi_program_operator[] */
    opdi_string graphs;          /* opd_graph *[], of conditions and loops */
    opdi_string notes;           /* const char *[] */
    const char **names;          /* of the file's programs */
    int32_t ninputs, noutputs, nsymbols, nnames;
    opd_device device;           /* where the program was exported */
};
/* What is read, and where. */
typedef struct opdi_program_reader {
    opd_program *program;
    opd_tensor_file *file;
    opd_tensor_file *weights, *constants;         /* of older files; NULL */
    opdi_source source;                           /* the JSON text */
    const char *root;                             /* what names in the file begin with */
    size_t root_bytes;
    const opd_json *json;
    opd_json *configs[2];                         /* what is said of weights and of constants; NULL */
    opd_tensor **storages;                        /* by entry of the file; references */
    bool plain;                  /* an older file: the tensors are two checkpoints in it */
    int depth;
} opdi_program_reader;
/* What an expression is worked out with: symbols that are bound. */
typedef struct opdi_program_sizes {
    const opd_program *program;
    const int64_t *values;
    const bool *bound;
} opdi_program_sizes;
#define OPDI_PROGRAM_SIZE (INT64_C(1) << 40)      /* sizes beyond are not worked out */
#endif
#endif

//== control flow ======================================================================================================

#if !defined(OPD_NO_PROGRAMS)
#if defined(OPDI_CORE)
typedef struct opdi_program_region {
    opd_graph *graphs[2];
    bool wants_device[2];
    int nfirst;                  /* loops: how many of the arguments are carried; map and scan: slices, see there */
    int nsliced;
    opd_value modes[4];          /* of wrap_with_...: what is switched on */
} opdi_program_region;
typedef struct opdi_region_kind {
    opdi_gfunction function;
    opdi_gfunction_run inside;
    int graphs, modes;           /* how many arguments are graphs; are values in front of them */
    int lists;                   /* how many lists of arguments there are behind the graphs; -1: no lists */
} opdi_region_kind;
#endif
#endif

//== nodes =============================================================================================================

#if !defined(OPD_NO_PROGRAMS)
#if defined(OPDI_CORE)
/* A graph that is being made of the JSON text. */
typedef struct opdi_program_graph {
    opd_graph *graph;
    opdi_gnamed *names;          /* [size], open addressing: values by their name */
    int64_t size;
    opdi_gvalue *device;         /* the input for the module's device, behind all others; NULL: not asked for */
    int64_t text, metas;         /* where the text has it, and says what its tensors are */
    opdi_gvalue *level;          /* of the vmap that it is the inside of; NULL: it is none */
    struct opdi_program_graph *outer;             /* around that, whose values it takes */
} opdi_program_graph;
#endif
#endif
#include "programs.prototypes.h"
#endif

