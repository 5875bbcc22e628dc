#include "base.h"

//== files of the system ===============================================================================================
//
//  Opens, maps, replaces and removes files.  On Windows, paths are UTF-8 and are converted to UTF-16.  Functions that
//  open, create, write to the disk, remove or replace a file set errno if they fail.

/* Returns the system's message for errno. */
OPDI_INTERNAL const char *opdi_errno_text(void) {
#if defined(_WIN32)
    if (errno == EBUSY) { return "another program uses the file"; }
#endif
    return errno == EILSEQ ? "the path is not valid UTF-8" : strerror(errno);
}

#if defined(_WIN32)
/* Converts `length` bytes of text from UTF-8 to UTF-16.  Returns the number of characters.  Returns 0 and sets errno if
   the text is not valid UTF-8 or is too long. */
OPDI_INTERNAL int opdi_utf16(const char *text, size_t length, wchar_t wide[OPDI_WIDE_PATH]) {
    const int count = length >= 4 * OPDI_WIDE_PATH ? 0 : MultiByteToWideChar(
        OPDI_WIN_UTF8, OPDI_WIN_INVALID_FAILS, text, (int)length, wide, OPDI_WIDE_PATH);
    if (count <= 0) {
        errno = length >= 4 * OPDI_WIDE_PATH || GetLastError() == OPDI_WIN_TOO_SMALL ? ENAMETOOLONG : EILSEQ;
    }
    return count > 0 ? count : 0;
}
/* Converts a path to UTF-16.  A path that Windows would find too long gets its long form: \\?\ and the absolute path.
   Returns false and sets errno if the path is not valid UTF-8 or is too long. */
OPDI_INTERNAL bool opdi_wide_path(const char *path, wchar_t wide[OPDI_WIDE_PATH]) {
    enum { SHORT = 248, PREFIX = 8 };             /* Windows' limit for folders; the longest prefix */
    wchar_t whole[OPDI_WIDE_PATH];
    if (!opdi_utf16(path, strlen(path) + 1, wide)) { return false; }
    const unsigned long length = GetFullPathNameW(wide, OPDI_WIDE_PATH, whole, NULL);
    if (length < SHORT) { return true; }
    if (length >= OPDI_WIDE_PATH - PREFIX) {
        errno = ENAMETOOLONG;
        return false;
    }
    const bool drive = whole[1] == L':';
    if (drive || (whole[0] == L'\\' && whole[1] == L'\\' && whole[2] != L'?' && whole[2] != L'.')) {
        (void)wcscpy(wide, drive ? L"\\\\?\\" : L"\\\\?\\UNC");      /* \\server becomes \\?\UNC\server */
        (void)wcscat(wide, drive ? whole : whole + 1);
    }
    return true;
}
/* Sets errno to the reason why a function of Windows failed.  Returns -1. */
OPDI_INTERNAL int opdi_windows_failed(void) {
    switch (GetLastError()) {
    case 2: case 3: case 123: errno = ENOENT; break;
    case 8: case 14: case 1455: errno = ENOMEM; break;
    case 39: case 112: errno = ENOSPC; break;
    case 80: case 183: errno = EEXIST; break;
    case OPDI_WIN_IN_USE: case OPDI_WIN_LOCKED: errno = EBUSY; break;
    case 5: case 1224: errno = EACCES; break;     /* 1224: mapped */
    default: errno = EIO; break;
    }
    return -1;
}

/* Opens a file as fopen does.  Returns NULL on failure. */
OPDI_INTERNAL FILE *opdi_file_open(const char *path, const char *mode) {
    wchar_t wide[OPDI_WIDE_PATH], wide_mode[8];
    size_t i = 0;
    for (; mode[i] && i < 7; i++) { wide_mode[i] = (wchar_t)mode[i]; }
    wide_mode[i] = 0;
    if (!opdi_wide_path(path, wide)) { return NULL; }
    FILE *const file = _wfopen(wide, wide_mode);
    if (file || errno != EACCES) { return file; }
    const unsigned long code = GetLastError(), about = GetFileAttributesW(wide);
    errno = about != OPDI_WIN_NO_ATTRIBUTES && (about & OPDI_WIN_FOLDER) ? EISDIR
        : code == OPDI_WIN_IN_USE || code == OPDI_WIN_LOCKED ? EBUSY : EACCES;
    return NULL;
}
/* Makes a new file and opens it for writing.  Returns NULL on failure; if the file exists already, errno is EEXIST. */
OPDI_INTERNAL FILE *opdi_file_create(const char *path) {
    wchar_t wide[OPDI_WIDE_PATH];
    if (!opdi_wide_path(path, wide)) { return NULL; }
    const int fd = _wopen(wide, _O_CREAT | _O_EXCL | _O_WRONLY | _O_BINARY, _S_IREAD | _S_IWRITE);
    FILE *const file = fd >= 0 ? _fdopen(fd, "wb") : NULL;
    if (fd >= 0 && !file) { (void)_close(fd); }
    return file;
}
/* Opens an existing file on a disk.  `access` is OPDI_WIN_READ, or 0 if the file is not read.  While the file is open,
   other programs may write, rename and remove it.  Returns NULL on failure, or if the path leads to another object,
   such as a pipe. */
static void *opdi_windows_open(const char *path, unsigned long access) {
    wchar_t wide[OPDI_WIDE_PATH];
    if (!opdi_wide_path(path, wide)) { return NULL; }
    void *const file = CreateFileW(wide, access, OPDI_WIN_SHARE_ALL, NULL, OPDI_WIN_OPEN_EXISTING, 0, NULL);
    if (file == OPDI_WIN_NO_FILE) { return NULL; }
    if (GetFileType(file) == OPDI_WIN_ON_DISK) { return file; }
    (void)CloseHandle(file);
    return NULL;
}
/* Returns true if the path leads to something that is not a regular file, such as a folder, pipe or device.  The
   library reads such a file without mapping it, and writes it without a temporary file. */
OPDI_INTERNAL bool opdi_is_special(const char *path) {
    wchar_t wide[OPDI_WIDE_PATH];
    const unsigned long about = opdi_wide_path(path, wide) ? GetFileAttributesW(wide) : OPDI_WIN_NO_ATTRIBUTES;
    if (about == OPDI_WIN_NO_ATTRIBUTES || (about & OPDI_WIN_FOLDER)) { return about != OPDI_WIN_NO_ATTRIBUTES; }
    void *const file = opdi_windows_open(path, 0);
    if (file) { (void)CloseHandle(file); }
    return !file;
}
/* Maps a whole file into memory, and sets *data and *length.  Writing to the map changes only the memory of this
   process.  Returns false if the file is empty or cannot be mapped. */
OPDI_INTERNAL bool opdi_file_map(const char *path, void **data, size_t *length) {
    void *const file = opdi_windows_open(path, OPDI_WIN_READ);
    unsigned long high = 0;
    const unsigned long low = file ? GetFileSize(file, &high) : 0;
    const uint64_t size = (uint64_t)high << 32 | low;
    *data = NULL;
    if (size > 0 && size <= SIZE_MAX / 2) {
        void *const map = CreateFileMappingW(file, NULL, OPDI_WIN_PAGE_WRITECOPY, 0, 0, NULL);
        if (map) { *data = MapViewOfFile(map, OPDI_WIN_MAP_COPY, 0, 0, (size_t)size); }
        if (map) { (void)CloseHandle(map); }      /* the view keeps the mapping */
    }
    if (file) { (void)CloseHandle(file); }
    *length = (size_t)size;
    return *data != NULL;
}
OPDI_INTERNAL void opdi_file_unmap(void *data, size_t length) {
    (void)length;
    (void)UnmapViewOfFile(data);
}
/* Writes all data of an open file to the disk.  Returns 0 on success. */
OPDI_INTERNAL int opdi_file_flush(FILE *file) {
    return fflush(file) || (_commit(_fileno(file)) && errno != EBADF);     /* devices fail with EBADF */
}
/* Removes a file.  Returns 0 on success. */
OPDI_INTERNAL int opdi_file_remove(const char *path) {
    wchar_t wide[OPDI_WIDE_PATH];
    return opdi_wide_path(path, wide) ? _wremove(wide) : -1;
}
/* Renames the file `to` to a free name in the same folder, which Windows permits even if the file is mapped.  Returns
   false and sets errno on failure. */
static bool opdi_windows_set_aside(const wchar_t *to, wchar_t aside[OPDI_WIDE_PATH]) {
    for (int i = 0; i < 100; i++) {
        if (_snwprintf(aside, OPDI_WIDE_PATH - 1, L"%ls.opd-old%d", to, i) < 0) {
            errno = ENAMETOOLONG;
            return false;
        }
        aside[OPDI_WIDE_PATH - 1] = 0;
        (void)DeleteFileW(aside);                 /* a file that an earlier call has left */
        if (MoveFileExW(to, aside, OPDI_WIN_WRITE_THROUGH)) { return true; }
        (void)opdi_windows_failed();
        if (errno != EEXIST && errno != EACCES) { return false; }
    }
    return false;
}
/* Renames the file `from` to `to`, and so replaces a file of that name, unless the file is read-only.  Windows does not
   replace a mapped file.  So a mapped file `to` is renamed first, to a name that ends with .opd-old and a number.  A
   later call that needs this name removes the renamed file if it is no longer mapped.  If another program writes `to`
   at the same time, tries again.  Returns 0 on success. */
OPDI_INTERNAL int opdi_file_replace(const char *from, const char *to) {
    wchar_t wide_from[OPDI_WIDE_PATH], wide_to[OPDI_WIDE_PATH], aside[OPDI_WIDE_PATH];
    if (!opdi_wide_path(from, wide_from) || !opdi_wide_path(to, wide_to)) { return -1; }
    for (int i = 0; i < 100; i++) {
        const unsigned long about = GetFileAttributesW(wide_to);
        if (about != OPDI_WIN_NO_ATTRIBUTES && (about & OPDI_WIN_READ_ONLY)) {
            errno = EACCES;
            return -1;
        }
        if (MoveFileExW(wide_from, wide_to, OPDI_WIN_REPLACE | OPDI_WIN_WRITE_THROUGH)) { return 0; }
        (void)opdi_windows_failed();
        if ((errno != EACCES && errno != EBUSY) || opdi_is_special(to)) { return -1; }
        if (!opdi_windows_set_aside(wide_to, aside)) {
            if (errno == ENOENT) { continue; }    /* another program has renamed it */
            return -1;
        }
        if (MoveFileExW(wide_from, wide_to, OPDI_WIN_WRITE_THROUGH)) {
            (void)DeleteFileW(aside);
            return 0;
        }
        (void)opdi_windows_failed();
        if (!MoveFileExW(aside, wide_to, OPDI_WIN_WRITE_THROUGH) &&
            GetFileAttributesW(wide_to) != OPDI_WIN_NO_ATTRIBUTES) {
            (void)DeleteFileW(aside);             /* another program has written a newer file */
        }
        if (errno != EEXIST && errno != EACCES) { return -1; }
    }
    return -1;
}
/* Gives the new file `tmp` the permissions of the file `path`, which `tmp` will replace.  On Windows, does nothing: a
   file has the permissions of its folder. */
OPDI_INTERNAL void opdi_same_mode(const char *tmp, const char *path) {
    (void)tmp;
    (void)path;
}

#else
OPDI_INTERNAL FILE *opdi_file_open(const char *path, const char *mode) { return fopen(path, mode); }
OPDI_INTERNAL FILE *opdi_file_create(const char *path) { return fopen(path, "wbx"); }
OPDI_INTERNAL int opdi_file_remove(const char *path) { return remove(path); }
OPDI_INTERNAL int opdi_file_replace(const char *from, const char *to) { return rename(from, to); }

#if defined(OPDI_MAPS)
OPDI_INTERNAL bool opdi_is_special(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}
OPDI_INTERNAL bool opdi_file_map(const char *path, void **data, size_t *length) {
#if defined(MAP_NORESERVE)
    const int flags = MAP_PRIVATE | MAP_NORESERVE;
#else
    const int flags = MAP_PRIVATE;
#endif
    struct stat st;
    void *memory = MAP_FAILED;
    int fd;
    if (opdi_is_special(path) || (fd = open(path, O_RDONLY)) < 0) { return false; }
    if (fstat(fd, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size <= SIZE_MAX / 2) {
        memory = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, flags, fd, 0);
        *data = memory;
        *length = (size_t)st.st_size;
    }
    (void)close(fd);
    return memory != MAP_FAILED;
}
OPDI_INTERNAL void opdi_file_unmap(void *data, size_t length) { (void)munmap(data, length); }
OPDI_INTERNAL int opdi_file_flush(FILE *file) {
    /* some file systems cannot synchronise a file */
    return fflush(file) || (fsync(fileno(file)) && errno != EINVAL && errno != ENOSYS);
}
OPDI_INTERNAL void opdi_same_mode(const char *tmp, const char *path) {
    struct stat st;
    if (stat(path, &st) == 0) { (void)chmod(tmp, st.st_mode & 0777); }
}

#else
OPDI_INTERNAL bool opdi_is_special(const char *path) {
    (void)path;
    return false;
}
OPDI_INTERNAL bool opdi_file_map(const char *path, void **data, size_t *length) {
    (void)path;
    (void)data;
    (void)length;
    return false;
}
OPDI_INTERNAL void opdi_file_unmap(void *data, size_t length) {
    (void)data;
    (void)length;
}
OPDI_INTERNAL int opdi_file_flush(FILE *file) { return fflush(file); }
OPDI_INTERNAL void opdi_same_mode(const char *tmp, const char *path) {
    (void)tmp;
    (void)path;
}
#endif
#endif

/* Copies `path` to a new string, without its last `cut` bytes and followed by the `length` bytes of `end`.  Sets *bytes
   to the size of the string.  Returns NULL and sets an error if memory runs out. */
static char *opdi_path_with(const char *path, size_t cut, const char *end, size_t length, size_t *bytes) {
    const size_t kept = strlen(path) - cut;
    char *const made = (char *)opdi_alloc(*bytes = kept + length + 1);
    if (!made) { return NULL; }
    memcpy(made, path, kept);
    if (length) { memcpy(made + kept, end, length); }
    made[kept + length] = 0;
    return made;
}
/* Returns the path of the file that is written if a program writes to `path`.  If `path` is a symbolic link, this is
   the file that the link leads to, perhaps through more links; it may be missing.  On Windows and on systems without
   POSIX, this is `path` itself.  Sets *bytes to the size of the result, which the caller frees by opdi_free.  If the
   links have no end, returns NULL and sets errno.  If memory runs out, returns NULL and sets an error. */
OPDI_INTERNAL char *opdi_written_path(const char *path, size_t *bytes) {
    char *to = opdi_path_with(path, 0, NULL, 0, bytes);
#if defined(OPDI_MAPS)
    char target[4096];
    ssize_t length;
    for (int links = 0; to && (length = readlink(to, target, sizeof target)) > 0; links++) {
        if (links == 40 || (size_t)length == sizeof target) {
            opdi_free(to, *bytes);
            errno = links == 40 ? ELOOP : ENAMETOOLONG;
            return NULL;
        }
        const char *const slash = strrchr(to, '/');
        const size_t size = *bytes, name = slash ? strlen(slash + 1) : size - 1;
        char *const next = opdi_path_with(to, *target == '/' ? size - 1 : name, target, (size_t)length, bytes);
        opdi_free(to, size);
        to = next;
    }
#endif
    return to;
}
