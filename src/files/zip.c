#include "files.h"

//== zip: the central directory ========================================================================================

/* Reads 64-bit fields of an entry from its extra field (`count` bytes at byte `at`).  The extra field contains only
   those of *full, *packed and *begin that are 0xffffffff, in this order.  Returns 0, or -1 and sets an error. */
static int opdi_zip_extra(const opdi_source *source, size_t at, size_t count, uint64_t *full, uint64_t *packed,
                          uint64_t *begin) {
    uint64_t *const fields[] = {full, packed, begin};
    const size_t end = at + count;
    while (end - at >= 4) {
        const size_t id = opdi_le16(source->data + at), size = opdi_le16(source->data + at + 2), next = at + 4 + size;
        int k;
        if (size > end - at - 4) { break; }
        for (at += 4, k = 0; id == 1 && k < 3; k++) {
            if (*fields[k] != 0xffffffffu) { continue; }
            if (next - at < 8) { return opdi_bad(source, at, "the zip64 field is too short"); }
            *fields[k] = opdi_le64(source->data + at);
            at += 8;
        }
        at = next;
    }
    return at == end || end - at < 4 ? 0 : opdi_bad(source, at, "an extra field is longer than its entry");
}
/* Checks that the local header of an entry agrees with the entry in the directory, and sets named->data to where the
   entry's data begins.  `name` has `name_n` bytes; the directory begins at byte `end`.  Returns 0, or -1 and sets an
   error. */
static int opdi_zip_local(const opdi_source *source, opdi_file_entry *named, const unsigned char *name, size_t name_n,
                          size_t end) {
    const unsigned char *at = source->data + named->begin;
    const size_t available = end - named->begin, packed = named->end;
    if (available < 30 || opdi_le32(at) != 0x04034b50u) {
        return opdi_bad(source, named->begin, "there is no header of an entry at the place that the directory gives");
    }
    size_t head = 30 + opdi_le16(at + 26) + opdi_le16(at + 28);
    if (opdi_le16(at + 26) != name_n || head > available || memcmp(at + 30, name, name_n) != 0) {
        return opdi_bad(source, named->begin, "the entry has another name than in the directory");
    }
    if (packed > available - head) {
        return opdi_bad(source, named->begin, "the entry has %llu bytes, but the directory already begins at byte %llu",
                        (unsigned long long)packed, (unsigned long long)end);
    }
    named->data = named->begin + head;
    named->end = named->data + packed;
    return 0;
}
/* Reads the entry at byte *at of the directory, which ends at byte `end`, and moves *at to the next entry. `directory`
   is the first byte of the directory.  Returns 0, or -1 and sets an error. */
static int opdi_zip_entry(opd_tensor_file *file, size_t *at, size_t end, size_t directory) {
    const unsigned char *here = file->source.data + *at;
    opdi_file_entry named;
    memset(&named, 0, sizeof named);
    if (end - *at < 46 || opdi_le32(here) != 0x02014b50u) {
        return opdi_bad(&file->source, *at, "expected an entry of the directory");
    }
    size_t name_n = opdi_le16(here + 28);
    size_t extra_n = opdi_le16(here + 30);
    size_t comment_n = opdi_le16(here + 32);
    if (name_n + extra_n + comment_n > end - *at - 46) {
        return opdi_bad(&file->source, *at, "the entry is longer than the directory");
    }
    named.where = *at;
    *at += 46 + name_n + extra_n + comment_n;
    if (memchr(here + 46, 0, name_n)) {
        return opdi_bad(&file->source, named.where + 46, "the name contains a zero byte");
    }
    size_t length = name_n > 4 && memcmp(here + 46 + name_n - 4, ".npy", 4) == 0 ? name_n - 4 : name_n;
    named.name = file->text.length;
    opdi_string_add_n(&file->text, (const char *)here + 46, length);
    opdi_string_add_n(&file->text, "", 1);
    if (file->text.failed) { return -1; }
    file->source.entry = file->text.data + named.name;
    named.flags = (uint16_t)opdi_le16(here + 8);
    named.method = (uint16_t)opdi_le16(here + 10);
    named.crc = opdi_le32(here + 16);
    uint64_t packed = opdi_le32(here + 20);
    named.full = opdi_le32(here + 24);
    uint64_t begin = opdi_le32(here + 42);
    if (opdi_zip_extra(&file->source, named.where + 46 + name_n, extra_n, &named.full, &packed, &begin)) { return -1; }
    if (name_n && here[46 + name_n - 1] == '/') {  /* a folder */
        file->source.entry = NULL;
        file->text.length = named.name;
        return 0;
    }
    if (begin > directory || packed > directory) {
        return opdi_bad(&file->source, named.where, "the entry would have %llu bytes at byte %llu, which is outside of "
                        "the file", (unsigned long long)packed, (unsigned long long)begin);
    }
    named.begin = (size_t)begin;
    named.end = (size_t)packed;
    int rc = opdi_zip_local(&file->source, &named, here + 46, name_n, directory);
    file->source.entry = NULL;
    return rc ? -1 : opdi_file_entry_add(file, &named);
}
/* Finds the directory of a zip file, from the record at the file's end or from the zip64 record in front of it.  Sets
   *begin and *end to the first byte of the directory and the byte after it, and *count to the number of entries.
   Returns 0, or -1 and sets an error. */
static int opdi_zip_directory(const opdi_source *source, size_t *begin, size_t *end, uint64_t *count) {
    const unsigned char *here;
    uint64_t at;
    if (source->length < 22) { return opdi_bad(source, source->length, "the zip file ends without a directory"); }
    for (at = source->length - 22;; at--) {        /* a comment or appended bytes may follow the record */
        here = source->data + at;
        if (opdi_le32(here) == 0x06054b50u && opdi_le16(here + 20) <= source->length - at - 22) { break; }
        if (at == 0 || source->length - at > 22 + 65535) {
            return opdi_bad(source, source->length, "the zip file ends without a directory (it is incomplete, or many "
                            "bytes follow it)");
        }
    }
    *count = opdi_le16(here + 10);
    uint64_t size = opdi_le32(here + 12);
    uint64_t offset = opdi_le32(here + 16);
    bool split = opdi_le16(here + 4) || opdi_le16(here + 6) || opdi_le16(here + 8) != *count;
    if (at >= 20 && opdi_le32(here - 20) == 0x07064b50u) {
        const uint64_t where = opdi_le64(here - 12);
        at -= 20;
        if (at < 56 || where > at - 56 || opdi_le32(source->data + where) != 0x06064b50u) {
            return opdi_bad(source, (size_t)at, "zip64's end of the directory is not at byte %llu, which is given here",
                            (unsigned long long)where);
        }
        at = where;
        here = source->data + at;
        *count = opdi_le64(here + 32);
        size = opdi_le64(here + 40);
        offset = opdi_le64(here + 48);
        split = opdi_le32(here + 16) || opdi_le32(here + 20) || opdi_le64(here + 24) != *count;
    }
    if (split) { return opdi_bad(source, (size_t)at, "the zip file has several parts, which is not supported"); }
    if (offset > at || size != at - offset || *count > size / 46) {
        return opdi_bad(source, (size_t)at, "the directory of %llu entries and %llu bytes at byte %llu is outside of "
                        "the file", (unsigned long long)*count, (unsigned long long)size, (unsigned long long)offset);
    }
    *begin = (size_t)offset;
    *end = (size_t)at;
    return 0;
}
OPDI_INTERNAL int opdi_zip_parse(opd_tensor_file *file) {
    size_t at, begin, end;
    uint64_t count;
    file->zip = true;
    if (opdi_zip_directory(&file->source, &begin, &end, &count) || opdi_text_reserve(file, end - begin)) { return -1; }
    for (at = begin; count; count--) {
        if (opdi_zip_entry(file, &at, end, begin)) { return -1; }
    }
    if (at != end) { return opdi_bad(&file->source, at, "the directory has more entries than it says"); }
    return opdi_file_entry_check(file, 0, begin, false);
}

/* Checks the compression method and the sizes of an entry.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_zip_check(const opdi_source *source, const opdi_file_entry *named) {
    const size_t packed = named->end - named->data;
    if (named->flags & 1) { return opdi_bad(source, named->begin, "the entry is encrypted, which is not supported"); }
    if (named->method != 0 && named->method != 8) {
        return opdi_bad(source, named->begin, "the entry is compressed by method %d, but only stored (0) and deflated "
                        "(8) entries can be read", (int)named->method);
    }
    /* deflate cannot compress better than by a factor of 1032 */
    if (named->full > SIZE_MAX / 2 || (named->method ? named->full / 1032 > packed : named->full != packed)) {
        return opdi_bad(source, named->begin, "%llu bytes cannot be compressed to %llu bytes",
                        (unsigned long long)named->full, (unsigned long long)packed);
    }
    return 0;
}
/* Sets `source` to the uncompressed bytes of an entry.  If they were compressed, *own is newly allocated memory for
   them, otherwise NULL.  If `check` is 2, the checksum must be right.  If `check` is 1, the stored checksum may also be
   0, which PyTorch writes if checksums are turned off.  If `check` is 0, the checksum is not compared.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_zip_bytes(const opd_tensor_file *file, const opdi_file_entry *named, int check,
                                 opdi_source *source, unsigned char **own) {
    const size_t packed = named->end - named->data;
    opdi_crc crc;
    *source = file->source;
    *own = NULL;
    source->entry = file->text.data + named->name;
    if (opdi_zip_check(source, named)) { return -1; }
    source->data += named->data;
    source->length = (size_t)named->full;
    if (named->method) {
        *own = (unsigned char *)opdi_alloc(source->length);
        opdi_inflate *state = *own ? (opdi_inflate *)opdi_alloc(sizeof *state) : NULL;
        const char *wrong = state ? opdi_inflate_all(state, source->data, packed, *own, source->length) : NULL;
        if (wrong) { (void)opdi_bad(source, (size_t)(state->at_in - file->source.data), "%s", wrong); }
        opdi_free(state, sizeof *state);
        source->data = *own;
    }
    if (opd_ok() && check && (named->crc || check > 1)) {
        opdi_crc_init(&crc);
        if (opdi_crc_add(&crc, 0, source->data, source->length) != named->crc) {
            (void)opdi_bad(source, OPDI_NOWHERE, "Bad CRC-32: the data is damaged");
        }
    }
    if (opd_ok()) { return 0; }
    opdi_free(*own, source->length);
    *own = NULL;
    return -1;
}
/* Returns the array of a .npy entry, which is decompressed if necessary.  Returns a reference, or NULL and sets an
   error. */
OPDI_INTERNAL opd_tensor *opdi_zip_read(const opd_tensor_file *file, const opdi_file_entry *named) {
    opdi_source source;
    unsigned char *own;
    if (opdi_zip_bytes(file, named, 2, &source, &own)) { return NULL; }
    opd_tensor *tensor = opdi_npy_read(&source);
    opdi_free(own, source.length);
    return tensor;
}
