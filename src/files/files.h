//----------------------------------------------------------------------------------------------------------------------
//  >>files_h      reading and writing of data files: types that several source files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_FILES_H)
#define OPDI_FILES_H
#include "../graphs/graphs.h"

//== bits ==============================================================================================================

#if !defined(OPD_NO_EXCHANGE)
/* The lookup tables for CRC-32, which is computed eight bytes at a time. */
typedef struct opdi_crc { uint32_t rows[8][256]; } opdi_crc;
/* A prefix code (Huffman code).  `quick` is indexed by the next 9 bits of input: it holds symbol * 16 + the length of
   the symbol's code, or 0 if these bits do not begin with a whole code. */
typedef struct opdi_prefix { uint16_t quick[512], count[16], symbols[288]; } opdi_prefix;
typedef struct opdi_inflate {
    const unsigned char *at_in, *end;
    uint64_t hold;               /* the next `bits` bits to be read, lowest first; at_in is behind them */
    int bits;
    unsigned char *out;
    size_t at, length;           /* at: bytes written so far; length: bytes to be written */
    const char *wrong;
    opdi_prefix literals, distances;
} opdi_inflate;
#endif

//== reading ===========================================================================================================

#if !defined(OPD_NO_EXCHANGE)
/* Memory that an open file and its tensors share. */
typedef struct opdi_file_buffer {
    int32_t refs;
    bool mapped;
    unsigned char *data;
    size_t length, block;        /* block: size of `data` if opdi_alloc made it, else 0 */
    void (*deleter)(void *data, void *user);
    void *user;
    opd_plugin *plugin;          /* the plug-in that contains the deleter, a reference */
} opdi_file_buffer;
/* The bytes to read, data[length].  For error messages: the name of the calling function (who), the file's name (path)
   and the name of the entry in the file (entry, or NULL). */
typedef struct opdi_source { const char *who, *path, *entry; const unsigned char *data; size_t length; } opdi_source;
#define OPDI_NOWHERE SIZE_MAX
#define OPDI_FILE_PART ((size_t)1 << 28)          /* most bytes of one fread or fwrite: 32-bit counts on Windows */
/* Returns the length of the file whose first source->length bytes are in `source`.  A result above source->length may
   be too small: the function is then called again with that many bytes.  Any other result is the file's length, or an
   error was set. */
typedef uint64_t (*opdi_file_length_fn)(const opdi_source *source);
/* A position in a text, with the end of the text. */
typedef struct opdi_scanner { const opdi_source *source; size_t at, end; } opdi_scanner;
#endif

//== writing ===========================================================================================================

#if !defined(OPD_NO_EXCHANGE)
/* The destination of written bytes: a temporary file in the folder of the final file, a checksum, or both. */
typedef struct opdi_sink {
    opdi_source source;
    FILE *file;
    char *to, *tmp;              /* to: the final name, or NULL if the file is written directly; tmp: the file's name
                                    until it is complete */
    size_t bytes;                /* size of the block that holds both names */
    uint64_t at;
    const opdi_crc *table;
    uint32_t crc;
    bool swap;                   /* true: the byte order of elements is reversed while they are written */
} opdi_sink;
#endif

//== json ==============================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#define OPDI_JSON_DEPTH 500
/* A value, or the key of an object's member.  at: position of the first character in the text; next: number of the
   first entry after the value and its members, combined with OPDI_JSON_* flags. */
typedef struct opdi_json_entry { uint32_t at, next; } opdi_json_entry;
/* A member of a large object, and a large object, whose members are sorted by their keys. */
typedef struct opdi_json_member { const char *key; int64_t value; } opdi_json_member;
typedef struct opdi_json_object { int64_t object; size_t first, count; } opdi_json_object;
struct opd_json {
    opdi_string text;                             /* the text; strings are decoded in place and padded with zeros */
    opdi_string entries;                          /* opdi_json_entry[] */
    opdi_string members, objects;                 /* members: opdi_json_member[], the members of all large objects;
                                                     objects: opdi_json_object[], in the order of the objects */
    int64_t count;
};
#endif

//== pickles ===========================================================================================================

#if !defined(OPD_NO_EXCHANGE)
/* The kinds of nodes of the tree that a pickle describes.  Nodes of the kinds from OPDI_PICKLE_LIST on have items;
   nodes of the other kinds have none.  The comments say what the node's items and its other fields (see
   opdi_pickle_node) contain. */
enum {
    OPDI_PICKLE_NONE, OPDI_PICKLE_BOOL, OPDI_PICKLE_INT, OPDI_PICKLE_FLOAT, OPDI_PICKLE_TEXT,
    OPDI_PICKLE_GLOBAL,          /* a known class or function; value: its index in opdi_pickle_globals */
    OPDI_PICKLE_NUMPY,           /* a dtype of NumPy, like "f8"; text and value: as for TEXT; last: 1 if big-endian */
    OPDI_PICKLE_STRANGE,         /* a value that cannot be read.  value: OPDI_BIG_INT, or the index in
                                    opdi_pickle_globals of the function that makes the value.  If the value is a bytes
                                    object, text and last are the position and length of the bytes, written as UTF-8 */
    OPDI_PICKLE_LIST, OPDI_PICKLE_TUPLE, OPDI_PICKLE_DICT,     /* collections of items; the items of a dict are key,
                                                                  value, key, value... */
    OPDI_PICKLE_STORAGE,         /* items: class, key, number of elements */
    OPDI_PICKLE_TENSOR,          /* items: storage, offset, sizes, strides, class or dtype; text: OPDI_TENSOR_* flags */
    OPDI_PICKLE_QUANTIZED,       /* a quantized tensor; items: the tensor of its numbers, and a tuple of quantization
                                    parameters; text: index of the function in opdi_pickle_globals */
    OPDI_PICKLE_DEVICE,          /* items: type and perhaps index */
    OPDI_PICKLE_COMPLEX,         /* items: two floats */
    OPDI_PICKLE_CALLED,          /* a range or slice; items: its arguments; text: index in opdi_pickle_globals */
    OPDI_PICKLE_CLASS,           /* a class of a script; items: its module and name */
    OPDI_PICKLE_OBJECT,          /* an object of a script's class; items: its module and name, and perhaps its state */
    OPDI_PICKLE_FOREIGN          /* an unknown class or function (text is 0), or the result of calling it (text is 1);
                                    items: the module and name and, for a result, all arguments and parts */
};
#define OPDI_BIG_INT (-2)        /* an integer of more than 64 bits */
/* Flags of a tensor: it requires grad, is a conjugated view, is a negated view. */
enum { OPDI_TENSOR_GRAD = 1, OPDI_TENSOR_CONJ = 2, OPDI_TENSOR_NEG = 4 };
typedef struct opdi_pickle_node {
    int kind;
    uint32_t first, last;        /* first and last item: indices in opdi_pickle.items; 0: none.  opdi_pickle_first reads
                                    them */
    uint32_t text;               /* position of a text in the data; of a tensor: OPDI_TENSOR_* flags */
    int64_t value;               /* a bool, an int, the bits of a float, or the length of a text; otherwise the number
                                    of items */
} opdi_pickle_node;
typedef struct opdi_pickle_item { uint32_t node, next; } opdi_pickle_item;
/* The state of the machine that runs a pickle.  Nodes and items are identified by their index in `nodes` and `items`;
   index 0 is not used. */
typedef struct opdi_pickle {
    const opdi_source *source;
    size_t at;
    uint64_t work;               /* work that exceeds reading each byte once: see opdi_pickle_work */
    opdi_string nodes, items;    /* nodes: opdi_pickle_node[]; items: opdi_pickle_item[] */
    opdi_string stack, marks;    /* stack: nodes (uint32_t[]); marks: heights of the stack (uint32_t[]) */
    opdi_string memo;            /* uint32_t[]: for each number of the pickle's memo, the node with this number; 0:
                                    none */
    bool script;                 /* true: written by torch.jit.save, so classes of scripts are allowed */
} opdi_pickle;
/* The effects of calling the known classes and functions (opdi_pickle_known.call). */
enum {
    OPDI_GLOBAL_DICT,            /* makes a dict from nothing, from pairs or from a dict */
    OPDI_GLOBAL_LIST,            /* returns its list or tuple argument; also for sets and sizes */
    OPDI_GLOBAL_TENSOR,          /* _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks, meta) */
    OPDI_GLOBAL_TENSOR_OF,       /* _rebuild_tensor_v3(the arguments of _v2 up to hooks, dtype, meta) */
    OPDI_GLOBAL_PARAMETER,       /* _rebuild_parameter(tensor, requires_grad, hooks): returns the tensor */
    OPDI_GLOBAL_TYPED,           /* _rebuild_from_type_v2(function, type, arguments, state): calls the function */
    OPDI_GLOBAL_FIRST,           /* returns its first argument, such as a layout's name, or empty bytes if it has no
                                    arguments */
    OPDI_GLOBAL_DEVICE, OPDI_GLOBAL_COMPLEX,
    OPDI_GLOBAL_BYTES,           /* encode(text, 'latin1'): returns the text if it is ASCII */
    OPDI_GLOBAL_CALLED,          /* makes a range or slice */
    OPDI_GLOBAL_NUMPY,           /* numpy.dtype(name, ...), whose state follows */
    OPDI_GLOBAL_SCALAR,          /* scalar(dtype, bytes): makes a number of NumPy */
    OPDI_GLOBAL_QUANTIZED,       /* _rebuild_qtensor(storage, offset, sizes, strides, how, ...): makes a quantized
                                    tensor, in scripts only */
    OPDI_GLOBAL_STRANGE,         /* makes a value that cannot be read */
    OPDI_GLOBAL_WORD             /* a name that cannot be called: a dtype, or a storage's class */
};
enum { OPDI_PICKLE_GLOBALS = 136 };
/* A known class or function. dtype: if the name is a dtype or a class of storages, the dtype of the elements; bytes:
   their size. */
typedef struct opdi_pickle_known {
    const char *module, *name; int call; opd_scalar_type dtype; int bytes;
} opdi_pickle_known;
#endif

//== tensor files ======================================================================================================

#if !defined(OPD_NO_EXCHANGE)
enum { OPDI_SAFETENSORS_DTYPES = 22 };
/* A dtype of safetensors, with its size in bits.  The rows are in the order in which the format sorts tensors; a dtype
   that this library lacks has OPD_DTYPE_NONE. */
typedef struct opdi_safetensors_row { const char *name; int bits; opd_scalar_type dtype; } opdi_safetensors_row;
typedef struct opdi_file_entry {
    size_t name;                 /* position of the entry's name in the file's text */
    size_t where;                /* position of the entry's description in the file, for error messages */
    size_t begin, data, end;     /* the entry's part of the file is [begin, end); its contents begin at `data`, after
                                    the entry's header.  In a checkpoint, begin is the index of the entry's first name,
                                    data is the offset in the storage or the index in `values`, and end is the number of
                                    a run's elements (0 if the entry is not a run) */
    int row, ndim;               /* row: in safetensors, the row in opdi_safetensors_dtypes; in a checkpoint, the dtype
                                    of an entry, or the bytes of each number in a member */
    size_t dims;                 /* index of the entry's sizes in the file's dims */
    uint64_t full;               /* zip: the unpacked size */
    uint32_t crc;                /* zip: the checksum of the unpacked bytes */
    uint16_t method, flags;      /* zip: the compression method (0: none, 8: deflate), and flags of the format */
    int64_t member;              /* checkpoint: the member with the tensor's storage, or -1 for a value or a run.  A run
                                    is a single entry for a long list of numbers; its name is the common prefix of the
                                    numbers' names, and `dims` is the run's number */
    int strange;                 /* checkpoint: 0 if the entry can be read, else the reason why not: a row of
                                    opdi_pickle_globals, or a number below 0 (such as OPDI_BIG_INT) */
    bool grad;                   /* checkpoint: true if the tensor requires grad */
    unsigned char lazy;          /* flags OPDI_TENSOR_CONJ, OPDI_TENSOR_NEG: the tensor is a conjugated view, a negated
                                    view */
} opdi_file_entry;
/* An element of a list that is sorted by name.  place: the entry's index; begin, end: its part of the file. */
typedef struct opdi_sorted { const char *name; size_t begin, end; int64_t place; } opdi_sorted;
/* The names of a run's elements, one after another, each with a final zero: `bytes` bytes.  NULL until the first name
   is needed. */
typedef struct opdi_named_run { char *names; size_t bytes; } opdi_named_run;
/* What only GGUF files have, see >>gguf. */
typedef struct opdi_gguf opdi_gguf;
struct opd_tensor_file {
    opdi_file_buffer *bytes;
    opdi_source source;
    bool zip, checkpoint, swap;  /* swap: true if numbers have the other byte order */
    int64_t count, nmeta;        /* count: number of names; a run is a single entry with many names */
    size_t path_bytes;
    opdi_string text;            /* names, keys and texts, each with a zero at its end */
    opdi_string entries, dims;   /* entries: opdi_file_entry[n]; dims: int64_t[] */
    opdi_string meta;            /* size_t[nmeta][2]: positions of a key and a value in `text` */
    opdi_sorted *sorted;         /* the entries, sorted by name */
    opdi_string values;          /* checkpoint: opd_value[], the values that are not tensors; u.i of a text is the
                                    position of the text in `text` */
    opdi_named_run *runs;
    int64_t nruns;
    opdi_string members;         /* checkpoint: opdi_file_entry[]: entries of the zip, or storages of an old file */
    opd_tensor **storages;       /* checkpoint: for each member that is a storage, a tensor of its bytes; NULL: not made
                                    yet */
    int64_t nstorages;
    opdi_gguf *gguf;             /* NULL for other files */
};
#endif

//== safetensors =======================================================================================================

#if !defined(OPD_NO_EXCHANGE)
#define OPDI_SAFETENSORS_HEADER 100000000 /* the largest header, in bytes, that the format allows */
#endif

//== GGUF ==============================================================================================================

#if !defined(OPD_NO_EXCHANGE)
/* The types of metadata, by their numbers in the format. */
enum {
    OPDI_GGUF_U8, OPDI_GGUF_I8, OPDI_GGUF_U16, OPDI_GGUF_I16, OPDI_GGUF_U32, OPDI_GGUF_I32, OPDI_GGUF_F32,
    OPDI_GGUF_BOOL, OPDI_GGUF_STRING, OPDI_GGUF_ARRAY, OPDI_GGUF_U64, OPDI_GGUF_I64, OPDI_GGUF_F64, OPDI_GGUF_TYPES
};
/* Limits: bytes of a key, bytes of a tensor's name, dimensions; the alignment of data if the file does not say it; the
   fewest bytes that a tensor's description and a key with a value take. */
enum {
    OPDI_GGUF_KEY = 65535, OPDI_GGUF_NAME = 63, OPDI_GGUF_DIMS = 4, OPDI_GGUF_ALIGNMENT = 32,
    OPDI_GGUF_LEAST_TENSOR = 24, OPDI_GGUF_LEAST_PAIR = 13
};
/* The name of a type of metadata, and the bytes of its numbers (0: none). */
typedef struct opdi_gguf_type { const char *name; int bytes; } opdi_gguf_type;
/* A key with its value.  key: position in the file's text; where: byte of the file at which the pair begins. */
typedef struct opdi_gguf_pair {
    size_t key, where;
    size_t value;                /* numbers: the byte of the file; strings: the index in `texts` of the first */
    int64_t count;               /* of an array: the number of elements; -1: not an array */
    int type;                    /* of the value, or of the elements of an array */
    void *list;                  /* of an array: the elements for an opd_value; NULL until they are needed */
} opdi_gguf_pair;
struct opdi_gguf {
    opdi_string pairs;           /* opdi_gguf_pair[]: the metadata in the file's order */
    opdi_sorted *sorted;         /* the keys, sorted */
    opdi_string texts;           /* size_t[]: positions in the file's text of the strings of a pair, and of the byte
                                    behind its last string */
    opd_tensor_file **parts;     /* the other files of a model in parts; `member` of an entry is 0 for a tensor of the
                                    first file, and i + 1 for one of parts[i] */
    int64_t nparts, most_parts;  /* most_parts: for how many `parts` has space */
};
/* Functions of >>gguf that >>files calls. */
OPDI_INTERNAL int opdi_gguf_parse(opd_tensor_file *file);
OPDI_INTERNAL int opdi_gguf_alone(const opd_tensor_file *file);
typedef opd_tensor_file *(*opdi_file_maker)(opdi_file_buffer *bytes, const opdi_source *source);
OPDI_INTERNAL int opdi_gguf_join(opd_tensor_file *file, opdi_file_maker make);
OPDI_INTERNAL void opdi_gguf_free(opd_tensor_file *file);
OPDI_INTERNAL opd_tensor *opdi_gguf_read(const opd_tensor_file *file, const opdi_file_entry *named);
OPDI_INTERNAL opdi_gguf_pair *opdi_gguf_pair_at(const opd_tensor_file *file, int64_t i);
OPDI_INTERNAL opdi_gguf_pair *opdi_gguf_find(const opd_tensor_file *file, const char *key);
OPDI_INTERNAL bool opdi_gguf_element(const opd_tensor_file *file, const opdi_gguf_pair *pair, int64_t i,
                                     int64_t *integer, double *real);
OPDI_INTERNAL size_t opdi_gguf_list_bytes(const opdi_gguf_pair *pair);
#endif

//== checkpoints =======================================================================================================

#if !defined(OPD_NO_EXCHANGE)
typedef struct opdi_checkpoint_walk {
    opd_tensor_file *file;
    const opdi_source *pickled;  /* the bytes of data.pkl */
    opdi_pickle pickle;
    opdi_string path, names;     /* names: becomes the file's text when the walk is done */
    const char *root, *folder;   /* "archive/" and "data/": in a zip file, the entries of storages begin with both; in
                                    an old file both are empty */
    size_t root_bytes;
    uint64_t steps, lazy;        /* steps: nodes that were walked; lazy: bytes that the names of all runs would take */
    uint64_t searched;           /* number of nodes searched for tensors */
    opdi_string barren;          /* char[number of nodes]: 1 if a search found no tensor there; empty: no search yet */
    int64_t found;               /* number of names so far */
    bool inside;                 /* the next node is a part of a module that was saved as a whole */
    uint32_t modules[102];       /* the attributes of the modules around the current node, by depth; 0: no module */
    int depth;
} opdi_checkpoint_walk;
#define OPDI_CHECKPOINT_DEPTH 100
#define OPDI_FOREIGN_TENSORS (-4)    /* opdi_file_entry.strange: a value of an unknown class that contains tensors */
#endif

//== writing files of several tensors ==================================================================================

#if !defined(OPD_NO_EXCHANGE)
/* A tensor of a file that is to be written. */
typedef struct opdi_output {
    const char *name;
    opd_tensor *tensor;          /* a reference to a tensor that the host can read */
    int row;                     /* safetensors: row in opdi_safetensors_dtypes */
    uint64_t begin, bytes;       /* bytes: size of the data; begin: position of the entry in the file (.npz only) */
    uint32_t crc;                /* .npz: the checksum of the data */
} opdi_output;
#endif

//== saving checkpoints ================================================================================================

#if !defined(OPD_NO_EXCHANGE)
typedef struct opdi_zip_writer {
    opdi_sink *sink;
    opdi_crc table;
    opdi_string directory;
    uint64_t count, begin, data; /* count: number of entries; begin, data: positions of the last entry and of its
                                    data */
} opdi_zip_writer;
typedef struct opdi_checkpoint_writer {
    opdi_source source;
    const opd_value *values;
    opdi_string branches;        /* opdi_branch[]; the first is the root */
    opdi_arena arena;            /* for `named` */
    opdi_index named;            /* the branches by their parents and names */
    opdi_string pickle;
    opdi_pointer_set storages;   /* opdi_storage * */
    opdi_string dtypes;          /* int[]: dtype of each storage; negative: its tensors have several dtypes */
} opdi_checkpoint_writer;
#endif

//== tensors in blocks =================================================================================================

#if !defined(OPD_NO_EXCHANGE)
OPDI_INTERNAL int opdi_blocks_refused(const opd_tensor *tensor, const char *who);
#endif

#include "files.prototypes.h"
#endif

