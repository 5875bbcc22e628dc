#include "files.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>files        reading files of several tensors: safetensors, .npz, checkpoints of torch.save (GGUF: see >>gguf)
//
//  When a file is opened, its directory becomes a sorted list of named entries.  A tensor is made from an entry when it
//  is asked for.  This section depends on the headers of the formats, on pickles and on tensors, but not on operators.
//----------------------------------------------------------------------------------------------------------------------

//== files of several tensors ==========================================================================================

OPDI_INTERNAL const opdi_safetensors_row opdi_safetensors_dtypes[] = {
    {"BOOL", 8, OPD_BOOL}, {"F4", 4, OPD_DTYPE_NONE}, {"F6_E2M3", 6, OPD_DTYPE_NONE}, {"F6_E3M2", 6, OPD_DTYPE_NONE},
    {"U8", 8, OPD_UINT8}, {"I8", 8, OPD_INT8}, {"F8_E5M2", 8, OPD_FLOAT8_E5M2}, {"F8_E4M3", 8, OPD_FLOAT8_E4M3FN},
    {"F8_E8M0", 8, OPD_FLOAT8_E8M0FNU}, {"F8_E4M3FNUZ", 8, OPD_FLOAT8_E4M3FNUZ},
    {"F8_E5M2FNUZ", 8, OPD_FLOAT8_E5M2FNUZ}, {"I16", 16, OPD_INT16}, {"U16", 16, OPD_UINT16}, {"F16", 16, OPD_FLOAT16},
    {"BF16", 16, OPD_BFLOAT16}, {"I32", 32, OPD_INT32}, {"U32", 32, OPD_UINT32}, {"F32", 32, OPD_FLOAT32},
    {"C64", 64, OPD_COMPLEX64}, {"F64", 64, OPD_FLOAT64}, {"I64", 64, OPD_INT64}, {"U64", 64, OPD_UINT64}};
OPDI_HAS_COUNT(opdi_safetensors_dtypes, OPDI_SAFETENSORS_DTYPES);

OPDI_INTERNAL bool opdi_is_gguf(const opdi_source *source) {
    return source->length >= 4 && memcmp(source->data, "GGUF", 4) == 0;
}
OPDI_INTERNAL opdi_file_entry *opdi_file_entry_of(const opd_tensor_file *file, int64_t i) {
    return (opdi_file_entry *)(void *)file->entries.data + i;
}
OPDI_INTERNAL const char *opdi_file_entry_name(const opd_tensor_file *file, int64_t i) {
    return file->text.data + opdi_file_entry_of(file, i)->name;
}
OPDI_INTERNAL int opdi_file_entry_add(opd_tensor_file *file, const opdi_file_entry *named) {
    opdi_string_add_n(&file->entries, (const char *)(const void *)named, sizeof *named);
    file->count++;
    return file->entries.failed ? -1 : 0;
}

OPDI_INTERNAL int64_t opdi_tensor_file_find(const opd_tensor_file *file, const char *name, size_t length) {
    int64_t low = 0, high = file->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const char *its = file->sorted[middle].name;
        const int order = strncmp(its, name, length);
        if (order == 0 && !its[length]) { return file->sorted[middle].place; }
        if (order < 0) { low = middle + 1; } else { high = middle; }
    }
    return -1;
}
static int opdi_by_place(const void *first, const void *second) {
    const opdi_sorted *sorted = (const opdi_sorted *)first, *other = (const opdi_sorted *)second;
    return sorted->begin != other->begin ? (sorted->begin < other->begin ? -1 : 1) : sorted->end != other->end
        ? (sorted->end < other->end ? -1 : 1) : 0;
}
static int opdi_by_name(const void *first, const void *second) {
    const opdi_sorted *sorted = (const opdi_sorted *)first, *other = (const opdi_sorted *)second;
    const int order = strcmp(sorted->name, other->name);
    return order ? order : sorted->place < other->place ? -1 : sorted->place > other->place;
}
/* Sorts `count` entries by name.  If two entries have the same name, returns the second of them; otherwise returns
   NULL. */
OPDI_INTERNAL const opdi_sorted *opdi_same_names(opdi_sorted *sorted, int64_t count) {
    if (count) { qsort(sorted, (size_t)count, sizeof *sorted, opdi_by_name); }
    for (int64_t i = 1; i < count; i++) {
        if (strcmp(sorted[i - 1].name, sorted[i].name) == 0) { return &sorted[i]; }
    }
    return NULL;
}
/* Makes file->sorted, and checks that the names of all entries differ, and that the entries' parts of the file do not
   overlap and begin at byte `begin` or later.  If `dense` is true, the parts must fill [begin, end).  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_file_entry_check(opd_tensor_file *file, size_t begin, size_t end, bool dense) {
    const opdi_sorted *same;
    opdi_sorted *sorted;
    if (file->count == 0) { sorted = NULL; }
    else if ((file->sorted = sorted = (opdi_sorted *)opdi_alloc((size_t)file->count * sizeof *sorted)) == NULL) {
        return -1;
    }
    for (int64_t i = 0; i < file->count; i++) {
        sorted[i].name = opdi_file_entry_name(file, i);
        sorted[i].begin = opdi_file_entry_of(file, i)->begin;
        sorted[i].end = opdi_file_entry_of(file, i)->end;
        sorted[i].place = i;
    }
    if (sorted) { qsort(sorted, (size_t)file->count, sizeof *sorted, opdi_by_place); }
    for (int64_t i = 0; i < file->count; i++) {
        file->source.entry = sorted[i].name;
        if (sorted[i].begin < begin || (dense && sorted[i].begin > begin)) {
            return opdi_bad(&file->source, opdi_file_entry_of(file, sorted[i].place)->where,
                            "its data begins at byte %llu, but %s %llu", (unsigned long long)sorted[i].begin,
                            sorted[i].begin < begin ? "other data reaches to byte"
                            : "the data before it ends at byte", (unsigned long long)begin);
        }
        begin = sorted[i].end;
    }
    file->source.entry = NULL;
    if (dense && begin != end) {
        return opdi_bad(&file->source, begin, "the data of the tensors ends here, and the file %s at byte %llu",
                        begin < end ? "only" : "already", (unsigned long long)end);
    }
    if ((same = opdi_same_names(sorted, file->count)) == NULL) { return 0; }
    file->source.entry = same->name;
    return opdi_bad(&file->source, opdi_file_entry_of(file, OPDI_MAX(same[-1].place, same->place))->where,
                    "two entries have this name");
}
/* Returns the tensor whose numbers are the `bytes` bytes at `at` of a file, little-endian.  The tensor uses the file's
   memory if kernels can read it there (aligned, little-endian machine; blocks need neither); otherwise it is a copy.
   On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_file_view(opdi_file_buffer *buffer, size_t at, size_t bytes, opd_ints sizes,
                                         opd_scalar_type dtype) {
    unsigned char *const data = buffer->data + at;
    const size_t part = opdi_is_block(dtype) ? 1 : opd_dtype_size(dtype) >> opd_dtype_is_complex(dtype);
    if ((uintptr_t)data % part || (opdi_big_endian() && part > 1)) {
        opd_tensor *const tensor = opd_tensor_from(data, sizes, dtype);
        if (tensor && opdi_big_endian()) { opdi_swap(tensor->data, bytes, part); }
        return tensor;
    }
    opdi_ref_up(&buffer->refs);
    return opd_tensor_wrap(data, sizes, NULL, dtype, opdi_file_buffer_release, buffer);
}
