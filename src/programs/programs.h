//----------------------------------------------------------------------------------------------------------------------
//  >>programs_h   exported programs: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_PROGRAMS_H)
#define OPDI_PROGRAMS_H
#include "../tools/tools.h"

//== sizes =============================================================================================================

#if !defined(OPD_NO_PROGRAMS)
#if defined(OPDI_CORE)
/* The source of an input of the graph. */
typedef enum opdi_program_source {
    OPDI_FROM_MODULE,            /* the module's tensor number `at` */
    OPDI_FROM_USER,              /* the user's input number `at` */
    OPDI_FROM_DEVICE,            /* the device of the module */
    OPDI_FROM_NOWHERE            /* None: the input is a token that keeps effects in order, which graphs do anyway */
} opdi_program_source;
/* The destination of an output of the graph. */
typedef enum opdi_program_sink {
    OPDI_TO_USER, OPDI_TO_MODULE, OPDI_TO_INPUT,  /* MODULE, INPUT: into tensor or input number `at` */
    OPDI_TO_NOWHERE                               /* the output is a token */
} opdi_program_sink;
typedef struct opdi_program_place { int kind; int64_t at; } opdi_program_place;
/* The required size of a dim of an input: that of a symbol or expression, or, without one, `size`. */
typedef struct opdi_program_dim {
    int64_t size;
    int32_t symbol;              /* number of the symbol; -1: the size is not a symbol */
    const char *text;            /* an expression, or NULL */
} opdi_program_dim;
/* An input of the user, and the properties that a run checks. */
typedef struct opdi_program_input {
    const char *name;
    bool constant;               /* the input must equal `value`, which was fixed by exporting */
    opd_value value;             /* NONE for a tensor, unless `constant` is true */
    int32_t tag;                 /* OPD_TAG_TENSOR, or the tag of a number */
    opd_scalar_type dtype;       /* its dtype at export; OPD_DTYPE_NONE: the dtype is unknown here */
    int32_t symbol;              /* of a number: its symbol, else -1 */
    int32_t ndim;
    opdi_program_dim *dims;
} opdi_program_input;
/* A size that varies between runs, with its bounds. */
typedef struct opdi_program_symbol { const char *name; int64_t least, most; } opdi_program_symbol;
/* An operator that the program calls, and how often.  `what` is the reason why it cannot be called, or NULL. */
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
    opd_tensor_file *file;       /* the file it was loaded from; its entries are copied on saving */
    int64_t text;                /* number of the file's entry with the JSON text */
    int64_t major, major_at;     /* major: the format's version; major_at: its position in the text */
    opd_module *module;
    opdi_program_shape *shapes;  /* of the module's tensors, when it was loaded */
    int32_t nshapes;
    opd_graph *graph;
    const char *name;            /* name of the program in its file */
    const char *path;
    opdi_program_place *from, *to;                /* from: for each input of the graph; to: for each output */
    opdi_program_input *inputs;
    const char **outputs;        /* names of the user's outputs */
    opdi_program_symbol *symbols;
    opdi_string operators;       /* opdi_program_operator[] */
    opdi_string graphs;          /* opd_graph *[]: graphs that nodes call, as conditions and loops do */
    opdi_string notes;           /* const char *[]: notes for the user */
    const char **names;          /* names of all programs in the file */
    int32_t ninputs, noutputs, nsymbols, nnames;
    opd_device device;           /* the device where it was exported */
};
/* The state while reading a file. */
typedef struct opdi_program_reader {
    opd_program *program;
    opd_tensor_file *file;
    opd_tensor_file *weights, *constants;         /* checkpoints in older files, else NULL */
    opdi_source source;                           /* the JSON text */
    const char *root;                             /* the prefix of names in the file */
    size_t root_bytes;
    const opd_json *json;
    opd_json *configs[2];                         /* descriptions of weights and constants, or NULL */
    opd_tensor **storages;                        /* by entry of the file: references to tensors of its bytes */
    bool plain;                  /* an older file, with tensors in two checkpoints */
    int depth;
} opdi_program_reader;
/* Values of the bound symbols, for evaluating expressions. */
typedef struct opdi_program_sizes {
    const opd_program *program;
    const int64_t *values;
    const bool *bound;
} opdi_program_sizes;
#define OPDI_PROGRAM_SIZE (INT64_C(1) << 40)      /* larger sizes are not evaluated */
#endif
#endif

//== control flow ======================================================================================================

#if !defined(OPD_NO_PROGRAMS)
#if defined(OPDI_CORE)
typedef struct opdi_program_region {
    opd_graph *graphs[2];
    bool wants_device[2];
    int nfirst;                  /* loops: number of carried arguments; map and scan: see opdi_region_scan */
    int nsliced;
    opd_value modes[4];          /* of wrap_with_...: the modes it sets */
} opdi_program_region;
typedef struct opdi_region_kind {
    opdi_gfunction function;
    opdi_gfunction_run inside;
    int graphs, modes;           /* graphs: number of arguments that are graphs; modes: of values before the graphs */
    int lists;                   /* number of argument lists after the graphs, -1 if there are none */
} opdi_region_kind;
#endif
#endif

//== nodes =============================================================================================================

#if !defined(OPD_NO_PROGRAMS)
#if defined(OPDI_CORE)
/* A graph while it is read from the JSON text. */
typedef struct opdi_program_graph {
    opd_graph *graph;
    opdi_gnamed *names;          /* [size], open addressing: values by their name */
    int64_t size;
    opdi_gvalue *device;         /* the last input, for the module's device; NULL if it is not used */
    int64_t text, metas;         /* positions in the JSON: of the graph, and of the descriptions of its tensors */
    opdi_gvalue *level;          /* if it is inside a vmap: the vmap's level, else NULL */
    struct opdi_program_graph *outer;             /* the graph around that vmap, whose values it can use */
} opdi_program_graph;
#endif
#endif
#include "programs.prototypes.h"
#endif

