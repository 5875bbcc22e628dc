#include "plugins.h"

//== compiling on Windows ==============================================================================================
//
//  Folders, files and processes for >>compiling.  Results are kept in the user's folder for local data, which Windows
//  protects from other users.  Paths are UTF-8, with / or \ between folders.

#if defined(OPDI_DLLS)
enum { OPDI_TRIES = 1000 };                       /* names that are tried for a temporary file */

static bool opdi_narrow_path(const wchar_t *wide, char out[OPDI_PATH]) {
    return WideCharToMultiByte(OPDI_WIN_UTF8, 0, wide, -1, out, OPDI_PATH, NULL, NULL) > 0;
}
/* Writes the value of a variable of the environment to `out`.  Returns `out`, or NULL if the variable is not set.
   Returns NULL and sets an error if the value is too long. */
OPDI_INTERNAL const char *opdi_setting(const char *name, char out[OPDI_PATH]) {
    wchar_t wide_name[OPDI_WIDE_PATH], wide[OPDI_WIDE_PATH];
    if (!opdi_utf16(name, strlen(name) + 1, wide_name)) { return NULL; }
    const unsigned long length = GetEnvironmentVariableW(wide_name, wide, OPDI_WIDE_PATH);
    if (length > 0 && length < OPDI_WIDE_PATH && opdi_narrow_path(wide, out)) { return out; }
    if (length > 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "the value of the environment variable %s has more than %d bytes", name,
                       OPDI_PATH - 1);
    }
    return NULL;
}
/* Writes the name of this computer to `name`, which has `size` bytes. */
OPD_UNUSED OPDI_INTERNAL void opdi_host_name(char *name, size_t size) {
    char text[OPDI_PATH];
    const char *const host = opdi_setting("COMPUTERNAME", text);
    (void)snprintf(name, size, "%s", host ? host : "");
}

//== files and folders =================================================================================================

static bool opdi_is_separator(char letter) { return letter == '/' || letter == '\\'; }
/* Returns true for C:\..., C:/... and \\server\...  A path like \folder depends on the current drive. */
static bool opdi_is_absolute(const char *path) {
    return (*path && path[1] == ':' && opdi_is_separator(path[2])) ||
           (opdi_is_separator(*path) && opdi_is_separator(path[1]));
}
/* Writes a new name over the last six letters of `path`. */
static void opdi_temporary_name(char *path) {
    static uint32_t made;
    char letters[9];
    union { uint64_t ticks; unsigned char room[8]; } now = {0};
    (void)QueryPerformanceCounter((union _LARGE_INTEGER *)(void *)&now);
    const uint64_t seed[3] = {now.ticks, GetCurrentProcessId(), OPDI_ADD(&made, 1)};
    (void)snprintf(letters, sizeof letters, "%06x", (unsigned)(opdi_hash_bytes(5, seed, sizeof seed) & 0xffffff));
    memcpy(path + strlen(path) - 6, letters, 6);
}
/* Makes a file or a folder whose name ends in six random letters instead of XXXXXX.  The file is open for writing.
   They return -1 or false, and set errno, on failure. */
OPDI_INTERNAL int opdi_temporary_file(char *path) {
    wchar_t wide[OPDI_WIDE_PATH];
    int fd = -1;
    for (int i = 0; i < OPDI_TRIES && fd < 0; i++) {
        opdi_temporary_name(path);
        if (!opdi_wide_path(path, wide)) { return -1; }
        fd = _wopen(wide, _O_CREAT | _O_EXCL | _O_WRONLY | _O_BINARY, _S_IREAD | _S_IWRITE);
        if (fd < 0 && errno != EEXIST) { return -1; }
    }
    return fd;
}
OPDI_INTERNAL bool opdi_temporary_folder(char *path) {
    wchar_t wide[OPDI_WIDE_PATH];
    for (int i = 0; i < OPDI_TRIES; i++) {
        opdi_temporary_name(path);
        if (!opdi_wide_path(path, wide)) { return false; }
        if (_wmkdir(wide) == 0) { return true; }
        if (errno != EEXIST) { return false; }
    }
    return false;
}
/* Files have the rights of their folder. */
OPDI_INTERNAL bool opdi_fd_private(int fd) { return fd >= 0; }
OPDI_INTERNAL bool opdi_fd_flush(int fd) { return _commit(fd) == 0; }
OPDI_INTERNAL int64_t opdi_fd_write(int fd, const char *data, size_t length) {
    return _write(fd, data, (unsigned)OPDI_MIN(length, 1 << 30));
}
/* Removes a folder that contains files but no folders; or, if `old` is true, the files and folders in it that killed
   compilations have left, and files that could not be removed while programs used them.  Of these, it removes only what
   is older than a day. */
static void opdi_folder_clear(const char *path, bool old) {
    wchar_t wide[OPDI_WIDE_PATH];
    struct _wfinddata64_t entry;
    char name[OPDI_PATH], inside[OPDI_PATH];
    if (snprintf(inside, sizeof inside, "%s/*", path) >= OPDI_PATH || !opdi_wide_path(inside, wide)) { return; }
    const intptr_t list = _wfindfirst64(wide, &entry);
    if (list == -1) { return; }
    do {
        const bool left = wcsncmp(entry.name, L"tmp.", 4) == 0 || wcsstr(entry.name, L".opd-old");
        if (entry.name[0] == L'.' || (old && (!left || entry.time_write >= time(NULL) - 24 * 60 * 60)) ||
            !opdi_narrow_path(entry.name, name) ||
            snprintf(inside, sizeof inside, "%s/%s", path, name) >= OPDI_PATH) { continue; }
        if (!(entry.attrib & _A_SUBDIR)) { (void)opdi_file_remove(inside); }
        else if (old) { opdi_folder_clear(inside, false); }
    } while (_wfindnext64(list, &entry) == 0);
    (void)_findclose(list);
    if (old || !opdi_wide_path(path, wide)) { return; }
    /* tries again, because a process that has just ended may still hold a file */
    for (int i = 0; i < 50 && _wrmdir(wide) && errno != ENOENT; i++) { Sleep(2); }
}
OPDI_INTERNAL void opdi_folder_remove(const char *path) { opdi_folder_clear(path, false); }
OPDI_INTERNAL void opdi_cache_sweep(const char *dir) { opdi_folder_clear(dir, true); }

/* Adds an opdi_cached to `list` for each file in the cache `dir`. */
OPDI_INTERNAL void opdi_cache_list(const char *dir, opdi_string *list) {
    wchar_t wide[OPDI_WIDE_PATH];
    struct _wfinddata64_t entry;
    char name[OPDI_PATH], inside[OPDI_PATH];
    if (snprintf(inside, sizeof inside, "%s/*", dir) >= OPDI_PATH || !opdi_wide_path(inside, wide)) { return; }
    const intptr_t found = _wfindfirst64(wide, &entry);
    if (found == -1) { return; }
    do {
        if (!(entry.attrib & _A_SUBDIR) && opdi_narrow_path(entry.name, name) && opdi_cache_has(name)) {
            opdi_cached_add(list, name, (int64_t)entry.size, (int64_t)entry.time_write);
        }
    } while (_wfindnext64(found, &entry) == 0);
    (void)_findclose(found);
}
/* Sets the time at which a file was used to now. */
OPDI_INTERNAL void opdi_cache_touch(const char *path) {
    wchar_t wide[OPDI_WIDE_PATH];
    if (opdi_wide_path(path, wide)) { (void)_wutime64(wide, NULL); }
}
/* Makes a folder, if it is not there.  Returns false and sets errno on failure. */
static bool opdi_folder_make(const char *path) {
    wchar_t wide[OPDI_WIDE_PATH];
    if (!opdi_wide_path(path, wide)) { return false; }
    if (_wmkdir(wide) == 0) { return true; }
    const unsigned long about = GetFileAttributesW(wide);
    return about != OPDI_WIN_NO_ATTRIBUTES && (about & OPDI_WIN_FOLDER);
}
/* Finds or makes the folder for results, and writes its path to `dir`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_cache_dir(char *dir) {
    char parent[OPDI_PATH];
    const char *found = opdi_setting("XDG_CACHE_HOME", parent);
    if (!found || !opdi_is_absolute(found)) { found = opdi_setting("LOCALAPPDATA", parent); }
    if (!found || !opdi_is_absolute(found)) {
        return opd_fail(OPD_ERROR_REGISTER, "there is no folder for compiled code: neither %%XDG_CACHE_HOME%% nor "
                        "%%LOCALAPPDATA%% is an absolute path with a drive");
    }
    if (opdi_path(dir, "%s/opdispatch", found)) { return -1; }
    (void)opdi_folder_make(found);
    return opdi_folder_make(dir) ? 0 : opdi_cache_fails(dir);
}
/* Finds the folder of opdispatch.h by `here`, the path from which the header was compiled.  A relative path is searched
   in the program's folder and the folders above it, but neither in the current folder nor at the top of a drive: other
   users may have put files there.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_header_search(opdi_build *build, const char *here) {
    wchar_t program[OPDI_WIDE_PATH], whole[OPDI_WIDE_PATH];
    char at[OPDI_PATH] = "", path[OPDI_PATH];
    if (opdi_is_absolute(here)) {
        if (opdi_path(path, "%s", here)) { return -1; }
    } else {
        const unsigned long length = GetModuleFileNameW(NULL, program, OPDI_WIDE_PATH);
        if (opdi_is_separator(*here) || length == 0 || length >= OPDI_WIDE_PATH || !opdi_narrow_path(program, at)) {
            return 0;
        }
        size_t end = strlen(at);
        do {
            while (end > 0 && !opdi_is_separator(at[end - 1])) { end--; }
            if (end <= 3) { return 0; }           /* C:\ */
            at[--end] = 0;
            if (opdi_path(path, "%s/%s", at, here)) { return -1; }
        } while (!opdi_is_readable(path));
    }
    /* the whole path, without . and .. */
    if (!opdi_is_readable(path) || !opdi_utf16(path, strlen(path) + 1, program)) { return 0; }
    const unsigned long length = GetFullPathNameW(program, OPDI_WIDE_PATH, whole, NULL);
    if (length == 0 || length >= OPDI_WIDE_PATH || !opdi_narrow_path(whole, path)) { return 0; }
    size_t end = strlen(path);
    while (end > 0 && !opdi_is_separator(path[end - 1])) { end--; }
    return opdi_path(build->include, "%.*s", (int)(end > 3 ? end - 1 : end), path);
}

//== programs ==========================================================================================================

/* Writes the path of a program to `out`: of the file that the first `length` bytes of `command` name, or that is found
   by this name in a folder of %PATH%.  Adds .exe to a name without a dot.  Returns false if there is none. */
static bool opdi_command_find(const char *command, size_t length, wchar_t out[OPDI_WIDE_PATH]) {
    wchar_t name[OPDI_WIDE_PATH];
    const int count = opdi_utf16(command, length, name);
    if (count == 0 || count == OPDI_WIDE_PATH) { return false; }
    name[count] = 0;
    const unsigned long cap = GetEnvironmentVariableW(L"PATH", NULL, 0);
    wchar_t *const folders = (wchar_t *)opdi_alloc((cap + 1) * sizeof *folders);
    if (!folders) { return false; }
    folders[0] = 0;
    (void)GetEnvironmentVariableW(L"PATH", folders, cap);
    const unsigned long found = SearchPathW(folders, name, L".exe", OPDI_WIDE_PATH, out, NULL);
    opdi_free(folders, (cap + 1) * sizeof *folders);
    return found > 0 && found < OPDI_WIDE_PATH;
}
/* gcc; or clang, if gcc is not in a folder of %PATH%. */
OPDI_INTERNAL const char *opdi_default_compiler(bool cxx) {
    wchar_t path[OPDI_WIDE_PATH];
    const char *const first = cxx ? "g++" : "gcc", *const second = cxx ? "clang++" : "clang";
    return opdi_command_find(first, strlen(first), path) || !opdi_command_find(second, strlen(second), path) ? first
        : second;
}
/* Returns `hash` mixed with the compiler command and with the path, size and time of the compiler, so that another
   version of the compiler gives another key. */
OPDI_INTERNAL uint64_t opdi_hash_compiler(uint64_t hash, const char *command) {
    wchar_t path[OPDI_WIDE_PATH];
    struct _stat64 about;
    hash = opdi_hash_text(hash, command);
    if (!opdi_command_find(command, opdi_command_name(command), path) || _wstat64(path, &about)) { return hash; }
    const int64_t id[2] = {(int64_t)about.st_size, (int64_t)about.st_mtime};
    return opdi_hash_bytes(opdi_hash_bytes(hash, path, wcslen(path) * sizeof *path), id, sizeof id);
}
/* Adds a word to a command line, in quotes.  Programs read it by these rules: a \ stands before a quote, and the number
   of \ before a quote is doubled. */
static void opdi_line_add(opdi_string *line, const char *word) {
    size_t slashes = 0;
    opdi_string_add(line, line->length ? " \"" : "\"");
    for (;; word++) {
        if (*word == '\\') {
            slashes++;
            continue;
        }
        if (*word == '"' || !*word) { slashes *= 2; }
        for (; slashes; slashes--) { opdi_string_add(line, "\\"); }
        if (!*word) { break; }
        if (*word == '"') { opdi_string_add(line, "\\"); }
        opdi_string_add_n(line, word, 1);
    }
    opdi_string_add(line, "\"");
}
/* The types of Windows for starting a process: SECURITY_ATTRIBUTES, STARTUPINFOEXW and PROCESS_INFORMATION. */
typedef struct opdi_windows_security { unsigned long size; void *rights; int inherited; } opdi_windows_security;
typedef struct opdi_windows_startup {
    unsigned long size;
    void *names[3];
    unsigned long place[7], flags;
    unsigned short show, more;
    void *extra, *files[3], *attributes;
} opdi_windows_startup;
typedef struct opdi_windows_process { void *process, *thread; unsigned long ids[2]; } opdi_windows_process;

/* Opens a file that a new process will inherit. */
static void *opdi_open_inherited(const wchar_t *path, unsigned long access, unsigned long how) {
    opdi_windows_security security = {sizeof security, NULL, 1};
    return CreateFileW(path, access, OPDI_WIN_SHARE_ALL, (struct _SECURITY_ATTRIBUTES *)(void *)&security, how, 0,
                       NULL);
}
/* Starts a process with files[0] as its input, files[1] as its output, and files[2] for its errors, which is files[1].
   It inherits nothing else.  Returns the process, or NULL on failure; GetLastError has the reason. */
static void *opdi_process_start(const wchar_t *program, wchar_t *line, void *files[3]) {
    enum { STANDARD_FILES = 0x100, NO_WINDOW = 0x08000000, EXTENDED = 0x00080000, FILES_INHERITED = 0x20002 };
    union { double aligned; unsigned char room[512]; } memory;
    struct _PROC_THREAD_ATTRIBUTE_LIST *const list = (struct _PROC_THREAD_ATTRIBUTE_LIST *)(void *)&memory;
    opdi_windows_size room = sizeof memory;
    opdi_windows_startup startup;
    opdi_windows_process made = {NULL, NULL, {0, 0}};
    memset(&startup, 0, sizeof startup);
    startup.size = sizeof startup;
    startup.flags = STANDARD_FILES;
    startup.attributes = list;
    memcpy(startup.files, files, sizeof startup.files);
    if (opd_code_forbidden("opd_compile_and_load") ||
        !InitializeProcThreadAttributeList(list, 1, 0, &room)) { return NULL; }
    const bool ok = UpdateProcThreadAttribute(list, 0, FILES_INHERITED, files, 2 * sizeof *files, NULL, NULL) &&
        CreateProcessW(program, line, NULL, NULL, 1, NO_WINDOW | EXTENDED, NULL, NULL,
                       (struct _STARTUPINFOW *)(void *)&startup, (struct _PROCESS_INFORMATION *)(void *)&made);
    const unsigned long code = ok ? 0 : GetLastError();
    DeleteProcThreadAttributeList(list);
    if (ok) { (void)CloseHandle(made.thread); }
    SetLastError(code);
    return ok ? made.process : NULL;
}
/* Starts the command line `line`, whose first word is the command `name`.  See opdi_command_start. */
static int opdi_line_start(const char *name, const opdi_string *line, const char *log, intptr_t *started) {
    const size_t bytes = (line->length + 1) * sizeof(wchar_t);
    wchar_t program[OPDI_WIDE_PATH], path[OPDI_WIDE_PATH];
    if (!opdi_command_find(name, strlen(name), program)) { return opd_ok() ? ENOENT : ENOMEM; }
    if (!opdi_wide_path(log, path)) { return errno; }
    if (line->length > 32000) { return E2BIG; }   /* Windows allows 32,767 characters */
    wchar_t *const wide = (wchar_t *)opdi_alloc(bytes);
    if (!wide) { return ENOMEM; }
    void *files[3] = {opdi_open_inherited(L"NUL", OPDI_WIN_READ, OPDI_WIN_OPEN_EXISTING),
                      opdi_open_inherited(path, OPDI_WIN_WRITE, OPDI_WIN_MAKE_EMPTY), NULL};
    files[2] = files[1];
    void *process = NULL;
    int reason = 0;
    if (MultiByteToWideChar(OPDI_WIN_UTF8, OPDI_WIN_INVALID_FAILS, line->data, -1, wide, (int)line->length + 1) <= 0) {
        errno = EILSEQ;
    } else if (files[0] == OPDI_WIN_NO_FILE || files[1] == OPDI_WIN_NO_FILE ||
               !(process = opdi_process_start(program, wide, files))) {
        reason = (int)GetLastError();
        (void)opdi_windows_failed();
    }
    /* an error that errno has no word for is told by Windows' number */
    const int rc = process ? 0 : errno == EIO && reason > 0 ? -reason : errno;
    *started = (intptr_t)process;
    for (int i = 0; i < 2; i++) {
        if (files[i] != OPDI_WIN_NO_FILE) { (void)CloseHandle(files[i]); }
    }
    opdi_free(wide, bytes);
    return rc;
}
/* Starts a command; its output goes to the file `log`.  Sets *process to the process.  Returns 0; if it cannot be
   started, errno or an error number of Windows times -1. */
OPDI_INTERNAL int opdi_command_start(char *const *argv, const char *log, intptr_t *process) {
    opdi_string line = {NULL, 0, 0, false};
    for (int i = 0; argv[i]; i++) { opdi_line_add(&line, argv[i]); }
    const int rc = line.failed ? ENOMEM : opdi_line_start(argv[0], &line, log, process);
    opdi_string_free(&line);
    return rc;
}
/* Waits for a command that was started.  Returns whether it succeeded. */
OPDI_INTERNAL bool opdi_command_wait(intptr_t process) {
    void *const handle = (void *)process;
    unsigned long status = 1;
    (void)WaitForSingleObject(handle, 0xffffffffu);
    const bool failed = !GetExitCodeProcess(handle, &status) || status != 0;
    (void)CloseHandle(handle);
    return !failed;
}
/* Returns the number of processors, at least 1. */
OPDI_INTERNAL int opdi_processors(void) {
#if defined(OPD_NO_THREADS)
    return 1;
#else
    return OPDI_MAX(1, OPDI_MIN(pthread_num_processors_np(), 64));
#endif
}
#endif
