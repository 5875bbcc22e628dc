//----------------------------------------------------------------------------------------------------------------------
//  >>api:exchange   exchanging tensors with other programs: DLPack, .npy, .npz, safetensors, GGUF; JSON
//----------------------------------------------------------------------------------------------------------------------

/* DLPack hands the memory of a tensor to another library, or takes it from one, without a copy.  dlpack.h declares the
   two structs: DLManagedTensorVersioned is for 1.x, DLManagedTensor is the older one without a version.  A program that
   only passes on pointers to these structs needs only the two declarations below.  A program that reads the structs
   includes dlpack.h before or after this header, and needs no casts. */
struct DLManagedTensorVersioned;
struct DLManagedTensor;
/* Flags of a DLManagedTensorVersioned. */
typedef enum opd_dlpack_flag { OPD_DLPACK_READ_ONLY = 1, OPD_DLPACK_IS_COPIED = 2 } opd_dlpack_flag;
/* Makes a struct from which another library takes the tensor's memory (Tensor.__dlpack__).  flags are OPD_DLPACK_*, or
   0.  The caller owns the struct, and calls its deleter or hands it on.  The memory stays alive until the deleter is
   called, which any thread may do.  If the tensor is on a device, work that computes its contents may still be queued.
   Returns NULL with an error if the tensor requires grad (call opd_detach first), has no memory (meta), is batched
   (inside vmap), or is on a device that DLPack does not know. */
OPD_API struct DLManagedTensorVersioned *opd_dlpack_export(opd_tensor *tensor, unsigned flags);
/* Makes the older struct, which has no version and no flags, as opd_dlpack_export does. */
OPD_API struct DLManagedTensor *opd_dlpack_export_unversioned(opd_tensor *tensor);
/* Makes another library's stream wait for the work that is queued on this thread's current stream of the tensor's
   device (the argument `stream` of Tensor.__dlpack__), and keeps the tensor's memory from being reused before the other
   stream's work is done.  Call this before the other library gets the struct.  stream: as in Python, -1: nothing has to
   wait; for CUDA, 1: the default stream, 2: the thread's default stream, others: a cudaStream_t.  Does nothing for the
   CPU.  Before an import, the other library does the same: give it 1, or the id of opd_stream_current if that is not 0.
   Returns 0, or -1 with an error. */
OPD_NEW int opd_dlpack_stream(opd_tensor *tensor, int64_t stream);
/* Makes a tensor over another library's memory (torch.from_dlpack).  Takes ownership of the struct: its deleter runs
   when the last view is freed, on the thread that frees it, or immediately if the import fails.  Writes the struct's
   flags (OPD_DLPACK_*) to *flags.  If flags is NULL, importing a read-only tensor fails, because operators could write
   into it.  Pinned host memory becomes a CPU tensor.  Returns NULL with an error for another major version, an
   unsupported dtype, lanes or device, misaligned data, or negative strides. */
OPD_API opd_tensor *opd_dlpack_import(struct DLManagedTensorVersioned *managed, unsigned *flags);
/* Makes a tensor from the older struct, which has no version and no flags, as opd_dlpack_import does. */
OPD_API opd_tensor *opd_dlpack_import_unversioned(struct DLManagedTensor *managed);

/* Reads a .npy file (numpy.save) of one array: versions 1.0 to 3.0, C and Fortran order, either byte order.  The
   numbers are copied into a new tensor, with Fortran's strides if the file has that order.  Returns NULL with an error
   that names file and byte if the file is truncated, too long or malformed, or has an unsupported dtype (structured,
   objects).
   This library maps files of all kinds to read them: if another process shortens a file while it is mapped, reading the
   missing part ends the program with SIGBUS.  From a pipe or device, the function reads as many bytes as the header of
   the data announces.  An .npz cannot be read from a pipe, because its directory is at the end. */
OPD_API opd_tensor *opd_npy_load(const char *path);
/* Reads the contents of a .npy file from `size` bytes of memory, as opd_npy_load does. */
OPD_API opd_tensor *opd_npy_parse(const void *data, size_t size);
/* Writes a .npy file (numpy.save).  The tensor may have any strides and device, and may require grad.  If NumPy lacks
   the dtype, this fails.  All functions that save write a temporary file in the same folder.  When all bytes are on the
   disk, they rename the temporary file, so there is never half a file.  The new file has the permissions of the old
   one.  If the path is a symbolic link, the link remains, and the file that it leads to is written (not on Windows).
   Returns 0, or -1 with an error. */
OPD_API int opd_npy_save(const char *path, opd_tensor *tensor);

/* A file of several tensors by name: .safetensors, .npz, .gguf or a checkpoint of torch.save (.pt, .pth, also the
   format of PyTorch before 1.6).  The contents determine the format.  Several threads may use a file at once. */
typedef struct opd_tensor_file opd_tensor_file;
/* Opens a file of tensors: maps it and reads its directory, but no tensor.  On failure returns NULL with an error that
   names file, byte and entry.
   Tensors of safetensors files and checkpoints are views of the mapped file, which stays mapped as long as they live.
   Tensors of a checkpoint that shared a storage share it again.  Writes into tensors never reach the file.  No process
   should shorten the file while it is mapped.  Tensors of an .npz (stored or deflated, zip64) are copied, and their
   checksums tested.
   GGUF files (version 2 or 3, little-endian) hold weights for llama.cpp.  Their tensors are views of the mapped file,
   with sizes in PyTorch's order; weights in few bits have a dtype in blocks, such as OPD_Q4_K.  A model in several
   files NAME-00001-of-00003.gguf is opened by the first, which stands for all tensors.  Everything that llama.cpp
   refuses is refused: wrong counts and sizes, offsets that are not the sum of the sizes before them, keys or names
   given twice, arrays of arrays.
   In a checkpoint, dicts, lists and tuples give names by path: "model/0.weight", "optimizer/state/0/step".  Keys that
   are not strings are written as Python prints them ("None", "1.5", "(1, 2)").  A checkpoint stores its objects as a
   pickle, which is a format of Python that can call functions.  This library reads it as data, and calls none of them.
   It can read tensors, sizes, dtypes, devices, dicts and numbers of NumPy.  A module that torch.save wrote as a whole
   gives its parameters and buffers by the names of its state_dict ("0.weight"), and its other attributes by names like
   "0.in_features".  An entry that was made by another class or function cannot be read, and values inside it have no
   names. */
OPD_API opd_tensor_file *opd_tensor_file_open(const char *path);
/* The kinds of files that this library reads. */
typedef enum opd_file_kind {
    OPD_FILE_NONE = 0,                            /* another file, or an empty one */
    OPD_FILE_NPY,                                 /* numpy.save: opd_npy_load */
    OPD_FILE_NPZ,                                 /* numpy.savez: opd_tensor_file_open */
    OPD_FILE_SAFETENSORS,                         /* safetensors: opd_tensor_file_open */
    OPD_FILE_CHECKPOINT,                          /* torch.save: opd_tensor_file_open, opd_module_open */
    OPD_FILE_PROGRAM,                             /* torch.export.save: opd_program_load */
    OPD_FILE_SCRIPT,                              /* torch.jit.save */
    OPD_FILE_COMPILED,                            /* AOTInductor's package, see >>api:aoti */
    OPD_FILE_GGUF                                 /* weights of llama.cpp: opd_tensor_file_open */
} opd_file_kind;
/* Returns the kind of a file by its contents, for programs that take any kind.  Returns OPD_FILE_NONE with an error if
   the file cannot be read, is a directory, or is a damaged file whose kind can still be recognised: it is cut off, its
   first bytes are nearly right, or its header or directory is invalid.  Other damage is found when the file is read. */
OPD_API opd_file_kind opd_file_kind_of(const char *path);
/* Opens a file of tensors in `size` bytes of memory, as opd_tensor_file_open does.  Takes ownership of the memory:
   deleter runs when the file is closed and all tensors over the memory are freed, or immediately if this fails.  If
   deleter is NULL, the memory must outlive the file and these tensors. */
OPD_API opd_tensor_file *opd_tensor_file_parse(void *data, size_t size, opd_deleter deleter, void *user);
OPD_API void opd_tensor_file_close(opd_tensor_file *file);                    /* tensors that were read from it stay
                                                                                 valid */
/* Returns the number of entries of a file. */
OPD_API int64_t opd_tensor_file_count(const opd_tensor_file *file);
/* Returns the name of the i-th entry, in the file's order.  The suffix .npy is left out, as in NumPy.  Returns NULL
   beyond the last entry.  Also returns NULL, with an error, if memory runs out.  It can run out because the names of
   the elements of a long list are made by the first call that needs them. */
OPD_API const char *opd_tensor_file_name(const opd_tensor_file *file, int64_t i);
/* Returns the index of the entry with that name (in an .npz with or without .npy); -1, without an error, if there is
   none.  In a checkpoint several entries may have one name: with keys 1 and '1', or 'a/b' and {'a': {'b': ...}}.  For
   such a name, this function and the functions below fail; functions that take the index of an entry always work. */
OPD_API int64_t opd_tensor_file_find(const opd_tensor_file *file, const char *name);
/* Returns the tensor of the i-th entry, in the innermost scope.  On failure returns NULL and sets an error.  An entry
   with an unsupported dtype (F4, F6_E2M3) fails here, not when the file is opened. */
OPD_API opd_tensor *opd_tensor_file_at(const opd_tensor_file *file, int64_t i);
/* Returns the tensor of the entry with that name, as opd_tensor_file_at does; fails if there is none. */
OPD_API opd_tensor *opd_tensor_file_get(const opd_tensor_file *file, const char *name);
/* Returns true if a tensor of a checkpoint required grad when it was saved.  Parameters do, tensors of a state_dict do
   not.  For other files, returns false.  A tensor that is read never requires grad: call opd_tensor_set_requires_grad,
   or use opd_module_open. */
OPD_API bool opd_tensor_file_requires_grad(const opd_tensor_file *file, int64_t i);
/* Returns the bytes of any entry of a zip file as a uint8 tensor [n].  If the bytes are not compressed, the tensor is a
   view of the mapped file.  The checksum is tested.  Fails for files that are not zip files, and for checkpoints. */
OPD_API opd_tensor *opd_tensor_file_bytes(const opd_tensor_file *file, int64_t i);
/* Writes the value of the entry with that name to *value: a tensor (of the innermost scope), int, float, bool, None,
   complex number or text.  A text lives as long as the file is open.  A NumPy number becomes an ordinary number, and a
   range or slice becomes the text that Python prints for it.  Returns 0, or -1 with an error.  Integers of more than 64
   bits, NumPy's arrays, sparse and quantized tensors, and objects of other classes fail with an error that names the
   kind. */
OPD_API int opd_tensor_file_value(const opd_tensor_file *file, const char *name, opd_value *value);
/* Writes the value of the i-th entry to *value, as opd_tensor_file_value does. */
OPD_API int opd_tensor_file_value_at(const opd_tensor_file *file, int64_t i, opd_value *value);
/* Writes an entry that is an int, float, bool or tensor of one element to *number.  Returns 0, or -1 with an error. */
OPD_API int opd_tensor_file_number(const opd_tensor_file *file, const char *name, double *number);
/* Returns the string under a key of the metadata of a GGUF file, or of a safetensors file's __metadata__.  Returns NULL
   if the key is missing or its value is not a string; also NULL, with an error, if a string of a GGUF file has a zero
   byte inside.  The string lives as long as the file is open. */
OPD_API const char *opd_tensor_file_metadata(const opd_tensor_file *file, const char *key);
/* Returns the i-th key of the metadata of a GGUF or safetensors file; NULL beyond the last. */
OPD_API const char *opd_tensor_file_metadata_key(const opd_tensor_file *file, int64_t i);
/* Writes the value under a key of the metadata of a GGUF file to *value: an int, float, bool or string, or a list of
   ints, floats, bools or (OPD_TAG_LIST) strings for an array.  An unsigned number of 64 bits above INT64_MAX becomes a
   negative int with the same bits, as in opd_value_uint.  In a safetensors file, all values are strings.  Strings and
   lists live as long as the file is open; a list is made by the first call for its key.  Any thread may call this.
   Returns 0, or -1 with an error: the key is missing, a string has a zero byte inside, an array has more than INT32_MAX
   elements. */
OPD_NEW int opd_tensor_file_metadata_value(const opd_tensor_file *file, const char *key, opd_value *value);
/* Returns the type of a value of the metadata, or of the elements of an array: "u8", "i8", "u16", "i16", "u32", "i32",
   "f32", "bool", "str", "u64", "i64" or "f64".  Returns NULL, without an error, if the key is missing. */
OPD_NEW const char *opd_tensor_file_metadata_type(const opd_tensor_file *file, const char *key);
/* Returns the number of elements of an array in the metadata of a GGUF file; -1, without an error, if the key is
   missing or its value is not an array. */
OPD_NEW int64_t opd_tensor_file_metadata_count(const opd_tensor_file *file, const char *key);
/* Returns element i of an array of strings in the metadata of a GGUF file, or for i = 0 a string that is not in an
   array.  The text ends with a zero, may contain any other bytes, also zeros, and lives as long as the file is open.
   Writes its length to *length, unless that is NULL.  Takes the same time for each i.  Returns NULL with an error if
   there is no such element. */
OPD_NEW const char *opd_tensor_file_metadata_text(const opd_tensor_file *file, const char *key, int64_t i,
                                                  size_t *length);
/* Writes element i of an array of numbers or bools in the metadata of a GGUF file to *number, or for i = 0 a number or
   bool that is not in an array.  Returns 0, or -1 with an error. */
OPD_NEW int opd_tensor_file_metadata_number(const opd_tensor_file *file, const char *key, int64_t i, double *number);
/* Writes a checkpoint that torch.load reads, also with weights_only=True and mmap=True.  Writes `count` values under
   paths, in this order.  The path "model/0.weight" is the key '0.weight' of the dict 'model', and "" is the whole file.
   Brackets mark other containers in a path: "param_groups/[0]" is an item of a list, "betas/(1)" of a tuple, and
   "state/{0}" has an integer as key.  Brackets without a number ("state/{}", "groups/[]", "empty/()") are an empty
   container.  Names that are read back have no brackets.
   Values are tensors of any strides and device, ints, floats, bools, None, texts (UTF-8) and lists of numbers.  If
   tensors share a storage, the whole storage is written once, and the tensors share it again when they are read.
   Returns 0, or -1 with an error. */
OPD_API int opd_checkpoint_file_save(const char *path, const char *const *names, const opd_value *values,
                                     int64_t count);
/* Writes an .npz file (numpy.savez): a zip file with entries names[i].npy, not compressed.  Returns 0, or -1 with an
   error. */
OPD_API int opd_npz_save(const char *path, const char *const *names, opd_tensors tensors);
/* Writes the same bytes as safetensors.torch.save_file: tensors with the largest elements first, then by name, and a
   header whose length is a multiple of 8 bytes.  metadata is key, value, key, value, ..., NULL; or NULL for none.
   complex128 fails, since the format lacks it.  Tensors that share memory are written as separate tensors.  Returns 0,
   or -1 with an error. */
OPD_API int opd_safetensors_save(const char *path, const char *const *names, opd_tensors tensors,
                                 const char *const *metadata);
/* Writes a GGUF file (version 3) with the tensors under their names, in this order, and `count` keys with their values
   as metadata.  The dtype of a tensor must be float16, bfloat16, float32, float64, int8 to int64 or one in blocks,
   whose bytes are written as they are.  A name has at most 63 bytes, and a tensor at most 4 dimensions; a tensor
   without dimensions is written as one of size [1], because the format has no such tensors.
   Values are ints, floats, bools, strings and lists of them.  A key may name the type of its value after a colon, as
   opd_tensor_file_metadata_type returns it: "llama.block_count:u64"; a key that has a colon itself must do so.
   Otherwise an int is written as u32 if it fits, else as i32 or i64; a list of ints as i32 if all fit, else as u32 or
   i64; and floats as f32, which is what llama.cpp expects.  An int with the type u64 stands for the bits of an
   unsigned number.  A value that its type cannot hold is an error.  The value of "general.alignment" (a power of two up
   to 65536; 32 if it is not given) says where the data of tensors may begin.  Writes the file as opd_npy_save does.
   Returns 0, or -1 with an error. */
OPD_NEW int opd_gguf_save(const char *path, const char *const *names, opd_tensors tensors, const char *const *keys,
                          const opd_value *values, int64_t count);

/* A JSON text (RFC 8259, with NaN, Infinity and -Infinity as Python writes them).  Values have indices; index 0 is the
   value of the whole text.  The index -1 means that there is no value, and all functions accept it.  So calls can be
   nested: opd_json_int(json, opd_json_get(json, 0, "epoch"), 0).  Any thread may use an opd_json. */
typedef struct opd_json opd_json;
/* The kinds of JSON values. */
typedef enum opd_json_kind {
    OPD_JSON_NONE = -1,                           /* no value */
    OPD_JSON_NULL,
    OPD_JSON_BOOL,
    OPD_JSON_INT,                                 /* a number that an int64_t holds */
    OPD_JSON_FLOAT,                               /* any other number */
    OPD_JSON_TEXT,
    OPD_JSON_LIST,
    OPD_JSON_OBJECT
} opd_json_kind;
/* Checks and reads a JSON text of `size` bytes in one pass, and keeps a copy.  The caller frees the result with
   opd_json_free.  If the text is not valid, returns NULL with an error that names line and column. */
OPD_API opd_json *opd_json_parse(const char *text, size_t size);
/* Reads a JSON file, as opd_json_parse reads a text. */
OPD_API opd_json *opd_json_load(const char *path);
/* opd_json_free frees a document.  opd_json_kind_of returns the kind of a value. */
OPD_API void opd_json_free(opd_json *json);
OPD_API opd_json_kind opd_json_kind_of(const opd_json *json, int64_t value);
/* opd_json_first returns the first value in a list or object, and opd_json_next the value after another; -1: none. */
OPD_API int64_t opd_json_first(const opd_json *json, int64_t list);
OPD_API int64_t opd_json_next(const opd_json *json, int64_t value);
OPD_API int64_t opd_json_count(const opd_json *json, int64_t list);           /* slow: visits all values */
/* Returns the name of a value in an object; NULL if the value is not in an object. */
OPD_API const char *opd_json_key(const opd_json *json, int64_t value);
/* Returns the value of that name in an object, the last if there are several; -1: none, or not an object. */
OPD_API int64_t opd_json_get(const opd_json *json, int64_t object, const char *key);
/* opd_json_text, opd_json_int, opd_json_double and opd_json_bool return a value, or `otherwise` if it has another kind.
   Texts are UTF-8 and live as long as json.  opd_json_double takes every number. */
OPD_API const char *opd_json_text(const opd_json *json, int64_t value, const char *otherwise);
OPD_API int64_t opd_json_int(const opd_json *json, int64_t value, int64_t otherwise);
OPD_API double opd_json_double(const opd_json *json, int64_t value, double otherwise);
OPD_API bool opd_json_bool(const opd_json *json, int64_t value, bool otherwise);
/* Finds the place where a value begins, for messages.  Writes the line, and the byte within the line, both counted from
   1; writes 0 if there is no value.  line and column may be NULL. */
OPD_API void opd_json_place(const opd_json *json, int64_t value, int64_t *line, int64_t *column);

