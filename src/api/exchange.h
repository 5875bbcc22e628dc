//----------------------------------------------------------------------------------------------------------------------
//  >>api:exchange   tensors from and for other programs: DLPack, .npy, .npz, safetensors; JSON
//----------------------------------------------------------------------------------------------------------------------

/* DLPack, the memory of a tensor handed to another library, or taken from one, without a copy.  The two structs are
   those of dlpack.h (1.x, and the older one without a version): a program that looks into them includes that before or
   after this header and needs no cast; one that passes them on needs no more than these names. */
struct DLManagedTensorVersioned;
struct DLManagedTensor;
/* Flags of a versioned one. */
typedef enum opd_dlpack_flag { OPD_DLPACK_READ_ONLY = 1, OPD_DLPACK_IS_COPIED = 2 } opd_dlpack_flag;
/* What other libraries take tensor's memory by (Tensor.__dlpack__); it stays alive until their deleter call, which may
   come from any thread.  The caller owns the struct: he calls its deleter, or hands it on.  flags: OPD_DLPACK_*, or 0.
   Work queued on a device's stream is not waited for.  NULL with an error: tensor requires grad (opd_detach first), has
   no memory (meta) or none of its own (inside vmap), or is on a device that DLPack does not know. */
OPD_API struct DLManagedTensorVersioned *opd_dlpack_export(opd_tensor *tensor, unsigned flags);
OPD_API struct DLManagedTensor *opd_dlpack_export_unversioned(opd_tensor *tensor);
/* A tensor over another library's memory (torch.from_dlpack).  Takes the struct over, as opd_tensor_wrap does memory:
   its deleter runs when the last view is gone, on the thread that let go of that, or at once when this fails.  *flags
   gets OPD_DLPACK_*; with flags NULL a tensor that is read-only is refused, as every operator may write.  Pinned memory
   of the host is the CPU's.  NULL with an error: another major version, a dtype, lanes or device that is not there,
   misaligned data, negative strides. */
OPD_API opd_tensor *opd_dlpack_import(struct DLManagedTensorVersioned *managed, unsigned *flags);
OPD_API opd_tensor *opd_dlpack_import_unversioned(struct DLManagedTensor *managed);

/* .npy, numpy.save's file of one array: versions 1.0 to 3.0, C and Fortran order, either byte order.  The tensor has
   memory of its own, with Fortran's strides where the file has that order.  parse reads from memory.  NULL with an
   error that names file and byte: truncated, too long, malformed, a dtype that is not there (structured, objects).
   Files of every kind are read where they are mapped: who shortens one meanwhile ends its readers (SIGBUS).  Of a pipe
   or device as much is read as its beginning says there is; an .npz, which has a directory at its end, is refused. */
OPD_API opd_tensor *opd_npy_load(const char *path);
OPD_API opd_tensor *opd_npy_parse(const void *data, size_t size);
/* numpy.save: any strides, any device, also what requires grad; not the dtypes that NumPy lacks.  All of save
   write beside the path, or the file that it leads to as a link, and rename when all is on the disk, so that there is
   never half a file; the new one has the old one's permissions.  0, or -1 with an error. */
OPD_API int opd_npy_save(const char *path, opd_tensor *tensor);

/* Files of several tensors by name: .safetensors, .npz, and what torch.save writes (.pt, .pth, also the stream of
   PyTorch before 1.6); which of them, the contents tell.  Opening maps the file and reads its directory, no tensor.
   Tensors of safetensors and checkpoints look at the map, which lives as long as they do, those of a checkpoint over
   one storage where they were over one; what is written into them never reaches the file, which nobody should shorten
   so long.  Those of an .npz (stored or deflated, zip64) are read, and their checksums tested.  A checkpoint's dicts,
   lists and tuples give names by path: "model/0.weight", "optimizer/state/0/step"; keys that are no texts are written
   as Python prints them ("None", "1.5", "(1, 2)").  Its pickle is data, and nothing is run: an entry that a class or
   function makes, beyond tensors, sizes, dtypes, devices, dicts and numbers of NumPy, is an error when it is asked for.
   What is in such an entry has no names.  NULL with an error that names file, byte and entry.  Any thread, several at a
   time. */
typedef struct opd_tensor_file opd_tensor_file;
OPD_API opd_tensor_file *opd_tensor_file_open(const char *path);
/* What a file is, by its contents: for programs that take any.  NONE, without an error, for another one, and an empty
   one.  NONE with an error that says what is wrong if it cannot be read, is a directory, or is damaged and it is still
   known what it was: cut off, with first bytes that are nearly right, a header or directory that is none.  Damage
   beyond that is found by who reads the file. */
typedef enum opd_file_kind {
    OPD_FILE_NONE = 0, OPD_FILE_NPY, OPD_FILE_NPZ, OPD_FILE_SAFETENSORS,
    OPD_FILE_CHECKPOINT,                          /* torch.save: opd_tensor_file_open, opd_module_open */
    OPD_FILE_PROGRAM,                             /* torch.export.save: opd_program_load */
    OPD_FILE_SCRIPT,                              /* torch.jit.save */
    OPD_FILE_COMPILED                             /* AOTInductor's package, see >>api:aoti */
} opd_file_kind;
OPD_API opd_file_kind opd_file_kind_of(const char *path);
/* Opens a file of tensors that lies in memory, taken over as opd_tensor_wrap does: deleter runs when the file is closed
   and the tensors over the memory are gone, or at once when this fails; NULL: the memory outlives them. */
OPD_API opd_tensor_file *opd_tensor_file_parse(void *data, size_t size, opd_deleter deleter, void *user);
OPD_API void opd_tensor_file_close(opd_tensor_file *file);                    /* its tensors stay */
OPD_API int64_t opd_tensor_file_count(const opd_tensor_file *file);
/* The name of the i-th entry, in the file's order; without .npy, as NumPy shows it.  NULL beyond the last, or with an
   error: names in a long list of numbers are made when one is asked for, which takes memory. */
OPD_API const char *opd_tensor_file_name(const opd_tensor_file *file, int64_t i);
/* The index of the entry with that name (.npz: with or without .npy); -1, without an error: none.  Of a checkpoint with
   the keys 1 and '1', or 'a/b' beside {'a': {'b': ...}}, several entries may have one name: asking for that is an error
   here and below, asking by index is not. */
OPD_API int64_t opd_tensor_file_find(const opd_tensor_file *file, const char *name);
/* The tensor of an entry; get: by name, where there being none is an error.  A dtype that is not there (F4, F6_E2M3)
   is one only now. */
OPD_API opd_tensor *opd_tensor_file_at(const opd_tensor_file *file, int64_t i);
OPD_API opd_tensor *opd_tensor_file_get(const opd_tensor_file *file, const char *name);
/* Whether a tensor of a checkpoint required grad when it was saved, as parameters do, not what state_dict gives; false
   of other files.  Tensors that are read never do: opd_tensor_set_requires_grad, or opd_module_open. */
OPD_API bool opd_tensor_file_requires_grad(const opd_tensor_file *file, int64_t i);
/* The bytes of an entry of a zip file, whatever it is: uint8 [n], in the mapped file where it is stored as it is; their
   checksum is tested.  Of files that are no zip files, and of the tensors of a checkpoint, an error. */
OPD_API opd_tensor *opd_tensor_file_bytes(const opd_tensor_file *file, int64_t i);
/* What an entry of a checkpoint is: a tensor (of the innermost scope), int, float, bool, None, complex number or text,
   which lives as long as the file is open; a number of NumPy is one like others, a range or slice the text that Python
   prints.  0, or -1 with an error, also of what is not read here (integers of more than 64 bits, NumPy's arrays, sparse
   and quantized tensors, objects of other classes), which says what it is. */
OPD_API int opd_tensor_file_value(const opd_tensor_file *file, const char *name, opd_value *value);
OPD_API int opd_tensor_file_value_at(const opd_tensor_file *file, int64_t i, opd_value *value);
/* An entry that is a number: int, float, bool, or a tensor of one element.  0, or -1 with an error. */
OPD_API int opd_tensor_file_number(const opd_tensor_file *file, const char *name, double *number);
/* The strings of a safetensors file's __metadata__: by key, NULL: not there; the i-th key, NULL beyond the last. */
OPD_API const char *opd_tensor_file_metadata(const opd_tensor_file *file, const char *key);
OPD_API const char *opd_tensor_file_metadata_key(const opd_tensor_file *file, int64_t i);
/* Writes a checkpoint that torch.load takes, also with weights_only=True and mmap=True: `count` values under paths, in
   this order.  "model/0.weight" is the key '0.weight' of the dict 'model'.  In brackets of a kind a part of a path is
   a list's item, "param_groups/[0]", a tuple's, "betas/(1)", or an integer as a key, "state/{0}"; "state/{}",
   "groups/[]" and "empty/()" are without any; the path "" is the whole file.  What is read back has names without the
   brackets.  Values: tensors (of any strides and device; those that share memory still do when they are read, all of
   which is written), ints, floats, bools, None, texts (UTF-8), lists of numbers.  0, or -1 with an error. */
OPD_API int opd_checkpoint_file_save(const char *path, const char *const *names, const opd_value *values,
                                     int64_t count);
/* numpy.savez: names[i].npy in a zip file, stored. */
OPD_API int opd_npz_save(const char *path, const char *const *names, opd_tensors tensors);
/* safetensors.torch.save_file, byte for byte: big elements first, then by name, the header a multiple of 8 bytes.
   metadata: key, value, key, value, ..., NULL; or NULL.  Not complex128, which the format does not have.  Tensors that
   share memory are written each. */
OPD_API int opd_safetensors_save(const char *path, const char *const *names, opd_tensors tensors,
                                 const char *const *metadata);

/* JSON (RFC 8259, and NaN, Infinity and -Infinity as Python writes them): a text is checked and read in one pass, and
   walked by the numbers of its values; 0 is the whole.
   parse keeps a copy, load reads a file; NULL with an error that says line and column.  Belongs to the caller; any
   thread.  -1 is no value, which every function below takes for one that is not there, so that steps can be put into
   each other: opd_json_int(json, opd_json_get(json, 0, "epoch"), 0). */
typedef struct opd_json opd_json;
typedef enum opd_json_kind {
    OPD_JSON_NONE = -1, OPD_JSON_NULL, OPD_JSON_BOOL,
    OPD_JSON_INT,                                 /* what an int64_t holds */
    OPD_JSON_FLOAT, OPD_JSON_TEXT, OPD_JSON_LIST, OPD_JSON_OBJECT
} opd_json_kind;
OPD_API opd_json *opd_json_parse(const char *text, size_t size);
OPD_API opd_json *opd_json_load(const char *path);
OPD_API void opd_json_free(opd_json *json);
OPD_API opd_json_kind opd_json_kind_of(const opd_json *json, int64_t value);
/* The first value in a list or object, the one behind it, and so on; -1: there is none, or no more. */
OPD_API int64_t opd_json_first(const opd_json *json, int64_t list);
OPD_API int64_t opd_json_next(const opd_json *json, int64_t value);
OPD_API int64_t opd_json_count(const opd_json *json, int64_t list);           /* by walking */
/* The name of a value that is in an object; NULL: it is not. */
OPD_API const char *opd_json_key(const opd_json *json, int64_t value);
/* The value of that name in an object, the last of several; -1: none, or no object. */
OPD_API int64_t opd_json_get(const opd_json *json, int64_t object, const char *key);
/* What a value is, or otherwise where it is of another kind; a text, in UTF-8, lives as long as json; float: of every
   number. */
OPD_API const char *opd_json_text(const opd_json *json, int64_t value, const char *otherwise);
OPD_API int64_t opd_json_int(const opd_json *json, int64_t value, int64_t otherwise);
OPD_API double opd_json_float(const opd_json *json, int64_t value, double otherwise);
OPD_API bool opd_json_bool(const opd_json *json, int64_t value, bool otherwise);
/* Where a value begins, for messages: line, and byte in it, from 1 on; 0: there is none. */
OPD_API void opd_json_place(const opd_json *json, int64_t value, int64_t *line, int64_t *column);

