//----------------------------------------------------------------------------------------------------------------------
//  >>files_h      files that are read and written: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_FILES_H)
#define OPDI_FILES_H
#include "../graphs/graphs.h"

//== bits ==============================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#if defined(OPDI_CORE)
/* The tables of CRC-32, which takes eight bytes at a time. */
typedef struct opdi_crc { uint32_t rows[8][256]; } opdi_crc;
/* A prefix code.  quick: by the next 9 bits, symbol * 16 + length of its code; 0 if the code is longer or
   there is none. */
typedef struct opdi_prefix { uint16_t quick[512], count[16], symbols[288]; } opdi_prefix;
typedef struct opdi_inflate {
    const unsigned char *at_in, *end;
    uint64_t hold;               /* `bits` bits that were taken from at_in, the next one lowest */
    int bits;
    unsigned char *out;
    size_t at, length;           /* written, of how many */
    const char *wrong;
    opdi_prefix literals, distances;
} opdi_inflate;
#endif
#endif

//== reading ===========================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#if defined(OPDI_CORE)
/* Memory that an open file and its tensors hold together. */
typedef struct opdi_bulk {
    int32_t refs;
    bool mapped;
    unsigned char *data;
    size_t length, block;        /* block: bytes of ours to free; 0: none */
    void (*deleter)(void *data, void *user);
    void *user;
    opd_plugin *plugin;          /* where deleter is; pinned */
} opdi_bulk;
/* What is read, and for errors by which function, from what file and entry. */
typedef struct opdi_source { const char *who, *path, *entry; const unsigned char *data; size_t length; } opdi_source;
#define OPDI_NOWHERE SIZE_MAX
/* Returns the length of the file that begins with source.  A length over source->length means that more bytes are
   needed to tell: it is called again when that many have been read.  A smaller one is final, or there is an error. */
typedef uint64_t (*opdi_told_fn)(const opdi_source *source);
/* A place in a text, with its end. */
typedef struct opdi_look { const opdi_source *source; size_t at, end; } opdi_look;
#endif
#endif

//== writing ===========================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#if defined(OPDI_CORE)
/* The place where written bytes go: a file beside the one that they are for, a checksum, or both. */
typedef struct opdi_sink {
    opdi_source source;
    FILE *file;
    char *to, *tmp;              /* what tmp will be called; NULL: it is the file itself */
    size_t bytes;                /* of both, in one block */
    uint64_t at;
    const opdi_crc *table;
    uint32_t crc;
    bool swap;                   /* elements the other way round than here */
} opdi_sink;
#endif
#endif

//== json ==============================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#if defined(OPDI_CORE)
#define OPDI_JSON_DEPTH 500
typedef struct opdi_json_entry { uint32_t at, next; } opdi_json_entry;
struct opd_json {
    opdi_string text;                             /* as it came, but for strings: decoded, the rest of them zeros */
    opdi_string entries;                          /* opdi_json_entry[] */
    int64_t count;
};
#endif
#endif

//== pickles ===========================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#if defined(OPDI_CORE)
/* What a node of the tree is. */
enum {
    OPDI_PICKLE_NONE, OPDI_PICKLE_BOOL, OPDI_PICKLE_INT, OPDI_PICKLE_FLOAT, OPDI_PICKLE_TEXT,
    OPDI_PICKLE_LIST, OPDI_PICKLE_TUPLE, OPDI_PICKLE_DICT,     /* of items; a dict's are a key and a value by turns */
    OPDI_PICKLE_GLOBAL,          /* value: an index of opdi_pickle_globals */
    OPDI_PICKLE_STORAGE,         /* items: class, key, elements */
    OPDI_PICKLE_TENSOR,          /* items: storage, offset, sizes, strides, class or dtype; text: OPDI_TENSOR_* */
    OPDI_PICKLE_DEVICE,          /* items: type and perhaps index */
    OPDI_PICKLE_COMPLEX,         /* items: two floats */
    OPDI_PICKLE_CALLED,          /* a range or slice; items: what it was called with; text: an index of globals */
    OPDI_PICKLE_NUMPY,           /* a dtype of NumPy, "f8"; text and value as of a text; last: 1: big-endian */
    OPDI_PICKLE_CLASS,           /* of a script: items: its module and name */
    OPDI_PICKLE_OBJECT,          /* of a class of a script: items: its module and name, and perhaps its state */
    OPDI_PICKLE_FOREIGN,         /* of a class or function that has no meaning here, or (text 0) that itself; items: its
                                    module and name, and all that it is made of */
    OPDI_PICKLE_STRANGE          /* what is data, but cannot be read here; value: whose result it is, as of a GLOBAL, or
                                    OPDI_BIG_INT.  Of bytes text and last: where their UTF-8 is, and how long */
};
#define OPDI_BIG_INT (-2)        /* an integer of more than 64 bits */
enum { OPDI_TENSOR_GRAD = 1, OPDI_TENSOR_CONJ = 2, OPDI_TENSOR_NEG = 4 };   /* requires grad; conjugated, negated */
typedef struct opdi_pickle_node {
    int kind;
    uint32_t first, last;        /* items: indices of opdi_pickle.items, 0: none */
    uint32_t text;               /* where a text is in the data; of a tensor what it is besides */
    int64_t value;               /* of a bool or int; of a float its bits; of a text its bytes; of what has items their
                                    number */
} opdi_pickle_node;
typedef struct opdi_pickle_item { uint32_t node, next; } opdi_pickle_item;
/* The machine.  A node is an index of nodes, an item one of items; neither uses 0. */
typedef struct opdi_pickle {
    const opdi_source *source;
    size_t at;
    uint64_t work;               /* what was copied and looked through again */
    opdi_string nodes, items;    /* opdi_pickle_node[], opdi_pickle_item[] */
    opdi_string stack, marks;    /* uint32_t[]: nodes; heights of the stack */
    opdi_string memo;            /* uint32_t[]: nodes by number, 0: none */
    bool script;                 /* of torch.jit.save: classes of scripts are there */
} opdi_pickle;
/* What a pickle may name, and what calling it gives. */
enum {
    OPDI_GLOBAL_DICT,            /* a dict, from nothing, pairs or a dict */
    OPDI_GLOBAL_LIST,            /* the list or tuple that it is called with; sets and sizes too */
    OPDI_GLOBAL_TENSOR,          /* _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks, meta) */
    OPDI_GLOBAL_TENSOR_OF,       /* _rebuild_tensor_v3(..., hooks, dtype, meta) */
    OPDI_GLOBAL_PARAMETER,       /* _rebuild_parameter(tensor, requires_grad, hooks): its tensor */
    OPDI_GLOBAL_TYPED,           /* _rebuild_from_type_v2(function, type, arguments, state): what the function gives */
    OPDI_GLOBAL_FIRST,           /* its first argument, such as a layout's name, or without one no bytes */
    OPDI_GLOBAL_DEVICE, OPDI_GLOBAL_COMPLEX,
    OPDI_GLOBAL_BYTES,           /* encode(text, 'latin1'): the text, where it has only ASCII */
    OPDI_GLOBAL_CALLED,          /* a range or slice */
    OPDI_GLOBAL_NUMPY,           /* numpy.dtype(name, ...), which its state follows */
    OPDI_GLOBAL_SCALAR,          /* scalar(dtype, bytes): a number of NumPy */
    OPDI_GLOBAL_QUANTIZED,       /* _rebuild_qtensor(storage, offset, sizes, strides, how, ...): read in scripts only */
    OPDI_GLOBAL_STRANGE,         /* what is not read here */
    OPDI_GLOBAL_WORD             /* is not called: a dtype, or a storage's class */
};
enum { OPDI_PICKLE_GLOBALS = 122 };
/* dtype: of the elements of a storage's class, or of a dtype; bytes: of an element. */
typedef struct opdi_pickle_known {
    const char *module, *name; int call; opd_scalar_type dtype; int bytes;
} opdi_pickle_known;
#endif
#endif

//== tensor files ======================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#if defined(OPDI_CORE)
enum { OPDI_ST_DTYPES = 22 };
/* The dtypes of safetensors, in the order in which it sorts tensors; we do not have all of them. */
typedef struct opdi_st_row { const char *name; int bits; opd_scalar_type dtype; } opdi_st_row;
typedef struct opdi_named {
    size_t name;                 /* in the file's text */
    size_t where;                /* what is said of it, for errors */
    size_t begin, data, end;     /* of its part of the file; data: what comes after a header of its own.  Checkpoint:
                                    its index; of a value where it is in values; of a run how many, else 0 */
    int row, ndim;               /* row: of opdi_st_dtypes; checkpoint: dtype, of a storage bytes of its numbers */
    size_t dims;                 /* where in the file's dims its sizes are */
    uint64_t full;               /* zip: bytes when unpacked, checksum, how it is packed, flags */
    uint32_t crc;
    uint16_t method, flags;
    int64_t member;              /* checkpoint: of which storage a tensor is part, -1: a value, or a run: a long list
                                    of numbers, as one entry, whose name is what theirs begin with; dims: its number */
    int strange;                 /* checkpoint: why it cannot be read, a row of opdi_pickle_globals or below 0; */
    bool grad;                   /* 0: it can.  Whether a tensor requires grad */
    unsigned char lazy;          /* OPDI_TENSOR_CONJ, OPDI_TENSOR_NEG: of a view that is conjugated, negated */
} opdi_named;
typedef struct opdi_sorted { const char *name; size_t begin, end; int64_t place; } opdi_sorted;
/* The names in a run, one after another: made when one is first asked for. */
typedef struct opdi_named_run { char *names; size_t bytes; } opdi_named_run;
struct opd_tensor_file {
    opdi_bulk *bytes;
    opdi_source source;
    bool zip, checkpoint, swap;  /* swap: numbers are the other way round than here */
    int64_t count, nmeta;        /* count: of what has a name; entries are fewer where there are runs */
    size_t path_bytes;
    opdi_string text;            /* names, keys and values, each with its zero */
    opdi_string entries, dims;   /* opdi_named[n]; int64_t */
    opdi_string meta;            /* size_t[nmeta][2]: a key and a value in the text */
    opdi_sorted *sorted;         /* n, by name */
    opdi_string values;          /* checkpoint: opd_value[], what is no tensor; text: where it is in the file's text */
    opdi_named_run *runs;
    int64_t nruns;
    opdi_string members;         /* checkpoint: opdi_named[], the entries of the zip, or storages */
    opd_tensor **storages;       /* checkpoint: the bytes of each member that is one, references; NULL: it is none */
    int64_t nstorages;
};
#endif
#endif

//== safetensors =======================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#if defined(OPDI_CORE)
#define OPDI_ST_HEADER 100000000 /* the most that the format allows */
#endif
#endif

//== checkpoints =======================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#if defined(OPDI_CORE)
typedef struct opdi_checkpoint_walk {
    opd_tensor_file *file;
    const opdi_source *pickled;  /* the bytes of data.pkl */
    opdi_pickle pickle;
    opdi_string path, names;     /* names: the file's text when the walk is done */
    const char *root, *folder;   /* "archive/" and "data/", what names of storages in a zip begin with; else empty */
    size_t root_bytes;
    uint64_t steps, lazy;        /* lazy: what names of runs would take */
    uint64_t searched;           /* nodes that were looked through for tensors */
    opdi_string barren;          /* char[nodes]: 1 where a search has been and found none; empty: no search yet */
    int64_t found;               /* how many have a name by now */
    int depth;
} opdi_checkpoint_walk;
#define OPDI_CHECKPOINT_DEPTH 100
#define OPDI_FOREIGN_TENSORS (-4)    /* with tensors in it */
#endif
#endif

//== saving checkpoints ================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#if defined(OPDI_CORE)
typedef struct opdi_zip_writer {
    opdi_sink *sink;
    opdi_crc table;
    opdi_string directory;
    uint64_t count, begin, data; /* entries; where the last one begins, and its bytes */
} opdi_zip_writer;
typedef struct opdi_checkpoint_writer {
    opdi_source source;
    const opd_value *values;
    opdi_string branches;        /* opdi_branch[]; the first is the root */
    opdi_string pickle;
    opdi_found storages;         /* opdi_storage * */
    opdi_string dtypes;          /* int[]: dtype of each storage, negative: of several */
} opdi_checkpoint_writer;
#endif
#endif

//== functions of higher layers that this layer calls ==================================================================

#if defined(OPDI_CORE)
#if !defined(OPD_NO_EXCHANGE)
OPDI_INTERNAL bool opdi_tensor_file_is_data(const opd_tensor_file *file, int64_t i);
#endif
#endif
#include "files.prototypes.h"
#endif

