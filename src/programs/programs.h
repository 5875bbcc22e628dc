//----------------------------------------------------------------------------------------------------------------------
//  >>programs_h   exported programs: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_PROGRAMS_H)
#define OPDI_PROGRAMS_H
#include "../tools/tools.h"

//== sizes =============================================================================================================

#if !defined(OPD_NO_PROGRAMS)
/* From where an input of the graph comes; `at` is a member of opdi_program_place. */
typedef enum opdi_program_source {
    OPDI_FROM_MODULE,            /* tensor number `at` of the module */
    OPDI_FROM_USER,              /* input number `at` of the user */
    OPDI_FROM_DEVICE,            /* the device of the module */
    OPDI_FROM_NOWHERE            /* None: the input is a token that keeps side effects in order; this library does not
                                    need it */
} opdi_program_source;
/* To where an output of the graph goes; `at` is a member of opdi_program_place. */
typedef enum opdi_program_sink {
    OPDI_TO_USER,                /* result number `at` of the user */
    OPDI_TO_MODULE,              /* written into tensor number `at` of the module */
    OPDI_TO_INPUT,               /* written into input number `at` of the user */
    OPDI_TO_NOWHERE              /* to nowhere: the output is a token */
} opdi_program_sink;
typedef struct opdi_program_place { int kind; int64_t at; } opdi_program_place;
/* The size that a dim of an input must have. */
typedef struct opdi_program_dim {
    int64_t size;                /* the size, if `text` is NULL */
    int32_t symbol;              /* the number of the symbol, if `text` is only a symbol; else -1 */
    const char *text;            /* the size as an expression; NULL if the size is fixed */
} opdi_program_dim;
/* An input of the user, with the properties that runs check. */
typedef struct opdi_program_input {
    const char *name;
    bool constant;               /* true: the input must be equal to `value`, which it was at export */
    opd_value value;             /* None if `constant` is false */
    int32_t tag;                 /* OPD_TAG_TENSOR, or the tag of a number, string or None */
    opd_scalar_type dtype;       /* the dtype at export; OPD_DTYPE_NONE if the library does not have this dtype */
    int32_t symbol;              /* if the input is a number: the number of its symbol, or -1 */
    int32_t ndim;
    opdi_program_dim *dims;
} opdi_program_input;
/* A size that varies between runs.  Its value must be at most `most`.  If `least` is greater than 2, its value must
   also be at least `least`. */
typedef struct opdi_program_symbol { const char *name; int64_t least, most; } opdi_program_symbol;
/* An operator that the program calls.  `count` is the number of its calls in the text.  `what` is the reason why it
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
    int32_t refs;                /* the caller has one reference, and each run has one */
    bool changed;                /* true if opd_program_set_graph has replaced the graph */
    uint32_t changes;            /* how often it has replaced the graph */
    opdi_arena arena;            /* the memory of names and tables */
    opd_tensor_file *file;       /* the file from which the program was loaded; saving copies its entries */
    int64_t text;                /* the number of the entry that has the JSON text */
    int64_t major, major_at;     /* major: the version of the format; major_at: the position of this number in the
                                    text */
    opd_module *module;
    opdi_program_shape *shapes;  /* the properties of the module's tensors when the program was loaded */
    int32_t nshapes;
    opd_graph *graph;
    opd_graph *quick;            /* a copy of graph with faster quantised layers, which runs use; NULL: there is none */
    const char *name;            /* the name of the program in its file */
    const char *path;
    opdi_program_place *from, *to;                /* from: for each input of the graph; to: for each output of the
                                                     graph */
    opdi_program_input *inputs;
    const char **outputs;        /* names of the user's outputs */
    opdi_program_symbol *symbols;
    opdi_string operators;       /* opdi_program_operator[] */
    opdi_string graphs;          /* opd_graph *[]: the graphs that nodes such as conditions and loops call */
    opdi_string notes;           /* const char *[]: notes for the user */
    const char **names;          /* the names of all programs in the file */
    const char *subclass;        /* the name of a parameter that is an object of a Python class; NULL: there is none */
    int32_t ninputs, noutputs, nsymbols, nnames;
    opd_device device;           /* the device that the first tensor among the inputs had at export */
};
#define OPDI_PROGRAM_INNER 64    /* how many tensors an object of a Python class may have */
/* The state while a file is read. */
typedef struct opdi_program_reader {
    opd_program *program;
    opd_tensor_file *file;
    opd_tensor_file *weights, *constants;         /* in older files: the checkpoints that have the tensors; else NULL */
    opdi_source source;                           /* the JSON text */
    const char *root;                             /* the prefix of the names of all entries */
    size_t root_bytes;
    const opd_json *json;
    opd_json *configs[2];                         /* the descriptions of the weights and of the constants, or NULL */
    opd_tensor **storages;                        /* for each entry of the file: its bytes as a uint8 tensor, or NULL */
    bool plain;                  /* true: the file was written before torch 2.7 and has two checkpoints */
    int depth;
} opdi_program_reader;
/* The values of symbols; expressions are evaluated with them. */
typedef struct opdi_program_sizes {
    const opd_program *program;
    const int64_t *values;
    const bool *bound;
} opdi_program_sizes;
#define OPDI_PROGRAM_SIZE (INT64_C(1) << 40)      /* an expression with a larger value is not evaluated */
#endif

//== control flow ======================================================================================================

#if !defined(OPD_NO_PROGRAMS)
typedef struct opdi_program_region {
    opd_program *program;        /* the program that owns the graphs */
    opd_graph *graphs[2];
    bool wants_device[2];
    int nfirst;                  /* in a loop: the number of carried arguments; in associative_scan: the number of
                                    sliced arguments */
    int nsliced;
    opd_value modes[4];          /* in wrap_with_...: the arguments that describe the mode */
} opdi_program_region;
typedef struct opdi_region_kind {
    opdi_gfunction function;
    opdi_gfunction_run inside;   /* runs the node in the scope that `function` has opened */
    int graphs, modes;           /* graphs: the number of arguments that are graphs; modes: the number of arguments
                                    before the graphs */
    int lists;                   /* the number of lists of arguments after the graphs; -1: the arguments are not in
                                    lists */
} opdi_region_kind;
#endif

//== nodes =============================================================================================================

#if !defined(OPD_NO_PROGRAMS)
/* The state while a graph is read from the JSON text. */
typedef struct opdi_program_graph {
    opd_graph *graph;
    opdi_graph_name *names;      /* [size] a hash table with open addressing, which finds values by their names */
    int64_t size;
    opdi_gvalue *device;         /* the last input of the graph, which is the module's device; NULL if the graph does
                                    not use it */
    int64_t text, metas;         /* positions in the JSON: of the graph, and of the descriptions of its tensors */
    opdi_gvalue *level;          /* in the graph of a vmap: the level of the vmap; else NULL */
    struct opdi_program_graph *outer;             /* in the graph of a vmap: the outer graph, whose values the graph can
                                                     use; else NULL */
} opdi_program_graph;
#endif

//== writing traced graphs =============================================================================================

#if !defined(OPD_NO_PROGRAMS)
/* A size that may vary between runs: dim `dim` of this input of the graph.  `size` and `second` are its values in the
   first and in the second trace. */
#define OPDI_DYNAMIC_SIZES 8
typedef struct opdi_dynamic_size { int64_t size, second; int32_t input, dim; } opdi_dynamic_size;
/* The dtype, sizes and strides of a tensor value.  dims has the sizes, and then the strides. */
typedef struct opdi_program_form { int dtype, ndim; int64_t dims[2 * OPD_MAX_DIMS]; } opdi_program_form;
struct opdi_program_writer;
/* Appends the text of the nodes of a block.  Returns 0, or -1 and sets an error. */
typedef int (*opdi_program_put_block_fn)(struct opdi_program_writer *writer, const opdi_gblock *block);
typedef struct opdi_program_writer {
    const opd_graph *graph;
    const opd_module *module;
    const char *name;            /* the name of the program in the file */
    opdi_program_put_block_fn put_block;          /* NULL if the program was loaded: then its text is copied */
    opd_device device;           /* the device that the tensors have in the file */
    opdi_arena arena;            /* memory for the names of constants and for `pairs` */
    opdi_pointer_set values;     /* gives each value its number */
    /* The parts of the program's JSON text.  `configs` has the descriptions of the weights and of the constants. */
    opdi_string nodes, metas, inputs, specs, outputs, sinks, names, leaves, configs[2];
    opdi_string items;           /* opdi_program_item[] */
    int64_t numbers[2];          /* the numbers of the next entries tensor_0, ... and weight_0, ... */
    int64_t nmade;               /* how many values and graphs got names that no value of the graph has */
    opdi_pointer_set done;       /* nodes that change lists, and which the operator of their loop replaces */
    /* The members from here on are for opd_program_save_open. */
    const opd_graph *other;      /* a second trace, in which the open sizes have other values */
    const opdi_gvalue **pairs;   /* [npairs]; the index is the number of a value of the first trace, the element is the
                                    corresponding value of the second trace */
    int64_t npairs;
    opdi_dynamic_size open[OPDI_DYNAMIC_SIZES];   /* the open sizes: s0, s1 ... */
    int nopen;
    const opdi_gvalue *described;                 /* the value whose description is written; NULL: a tensor of the
                                                     module */
    int64_t examples[OPDI_OPEN_NAMES];            /* of a graph with open sizes: examples of them */
    opdi_string floats;          /* the descriptions of floats that are computed from open sizes */
    opdi_string heads, symbols;  /* heads: nodes at the beginning of the program that compute sizes from the open sizes;
                                    symbols: the descriptions of their results */
} opdi_program_writer;
#endif
#include "programs.prototypes.h"
#endif

