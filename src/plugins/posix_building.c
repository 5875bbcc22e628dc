#include "plugins.h"

//== compiling on POSIX systems ========================================================================================
//
//  Folders, files and processes for >>compiling.  Results are kept in a folder that only this user can change.

/* Returns the value of a variable of the environment, or NULL.  `out` is not used. */
OPDI_INTERNAL const char *opdi_setting(const char *name, char *out) {
    (void)out;
    return getenv(name);
}
OPDI_INTERNAL const char *opdi_default_compiler(bool cxx) { return cxx ? "c++" : "cc"; }
/* Writes the name of this computer to `name`, which is `size` zero bytes. */
OPD_UNUSED OPDI_INTERNAL void opdi_host_name(char *name, size_t size) { (void)gethostname(name, size - 1); }

/* Makes a file or a folder whose name ends in six random letters instead of XXXXXX.  The file is open for writing.
   They return -1 or false, and set errno, on failure. */
OPDI_INTERNAL int opdi_temporary_file(char *path) { return mkstemp(path); }
OPDI_INTERNAL bool opdi_temporary_folder(char *path) { return mkdtemp(path) != NULL; }
/* Makes an open file readable only for this user, writes it to the disk, or writes bytes to it. */
OPDI_INTERNAL bool opdi_fd_private(int fd) { return fchmod(fd, 0600) == 0; }
OPDI_INTERNAL bool opdi_fd_flush(int fd) { return fsync(fd) == 0; }
OPDI_INTERNAL int64_t opdi_fd_write(int fd, const char *data, size_t length) { return write(fd, data, length); }

/* Removes a file, or a folder that contains files but no folders. */
OPDI_INTERNAL void opdi_folder_remove(const char *path) {
    DIR *d = opendir(path);
    const struct dirent *e;
    char file[OPDI_PATH];
    while (d && (e = readdir(d)) != NULL) {
        if (*e->d_name != '.' && snprintf(file, sizeof file, "%s/%s", path, e->d_name) < OPDI_PATH) {
            (void)remove(file);
        }
    }
    if (d) { (void)closedir(d); }
    (void)remove(path);
}

/* Adds an opdi_cached to `list` for each file in the cache `dir`. */
OPDI_INTERNAL void opdi_cache_list(const char *dir, opdi_string *list) {
    DIR *d = opendir(dir);
    const struct dirent *e;
    struct stat s;
    char path[OPDI_PATH];
    while (d && (e = readdir(d)) != NULL) {
        if (opdi_cache_has(e->d_name) && snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < OPDI_PATH &&
            lstat(path, &s) == 0 && S_ISREG(s.st_mode)) {
            opdi_cached_add(list, e->d_name, (int64_t)s.st_size, (int64_t)s.st_mtime);
        }
    }
    if (d) { (void)closedir(d); }
}
/* Sets the time at which a file was used to now. */
OPDI_INTERNAL void opdi_cache_touch(const char *path) { (void)utime(path, NULL); }
/* Removes files in `dir` that killed compilations have left, if they are older than a day. */
OPDI_INTERNAL void opdi_cache_sweep(const char *dir) {
    DIR *d = opendir(dir);
    const struct dirent *e;
    struct stat s;
    char path[OPDI_PATH];
    while (d && (e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, "tmp.", 4) == 0 && snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < OPDI_PATH &&
            lstat(path, &s) == 0 && s.st_mtime < time(NULL) - 24 * 60 * 60) {
            opdi_folder_remove(path);
        }
    }
    if (d) { (void)closedir(d); }
}

/* Returns true if only this user and the system (root, or the owner of /) can replace the file at `path`, a path
   without links.  No folder of the path may belong to another user.  Other users may write into a folder only if it is
   sticky, which means that only the owner of a file can remove it.  If `strict` is false, folders of other users are
   allowed, except inside a folder into which other users can write.  Sets `bad` to the first unsafe folder. */
static bool opdi_path_guarded(const char *path, bool strict, char *bad) {
    struct stat top, s;
    bool ok = stat("/", &top) == 0, shared = false;
    size_t length = 1;
    for (; ok; length += 1 + strcspn(path + length + 1, "/")) {
        (void)snprintf(bad, OPDI_PATH, "%.*s", (int)length, path);
        ok = lstat(bad, &s) == 0 &&
             (s.st_uid == geteuid() || s.st_uid == 0 || s.st_uid == top.st_uid || !(strict || shared));
        shared = (s.st_mode & 02) || ((s.st_mode & 020) && s.st_gid != s.st_uid);      /* a group counts if it is not
                                                                                          the user's own */
        ok = ok && (!shared || (S_ISDIR(s.st_mode) && (s.st_mode & 01000)));
        if (length == 1 && path[1]) { length = 0; }
        else if (!path[length]) { return ok; }
    }
    return false;
}

/* Finds or makes a folder, and writes its path without links to `out`.  Returns 0, or -1 and sets an error. */
static int opdi_folder_make(const char *path, char *out) {
    const int code = mkdir(path, 0700) ? errno : 0;
    char *const real = realpath(path, NULL);
    struct stat s;
    int rc = 0;
    errno = code != EEXIST && code ? code : errno;            /* EEXIST: the path exists, perhaps as a link to nothing
                                                                 */
    if (!real) { rc = opdi_cache_fails(path); }
    else if (stat(real, &s) == 0 && !S_ISDIR(s.st_mode)) {
        errno = ENOTDIR;
        rc = opdi_cache_fails(path);
    } else { rc = opdi_path(out, "%s", real); }
    free(real);
    return rc;
}
/* Finds or makes the folder for results, and writes its path to `dir`.  Only this user may write into this folder,
   and nobody else can replace it.  The folder may be a link to another one, which must be as safe.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_cache_dir(char *dir) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool own = xdg && *xdg == '/';
    struct stat s;
    char parent[OPDI_PATH], at[OPDI_PATH], path[OPDI_PATH], bad[OPDI_PATH];
    if (geteuid() != getuid()) {
        return opd_fail(OPD_ERROR_REGISTER, "a program that runs with the rights of another user (set-user-ID) cannot "
                        "compile code");
    }
    if (!own && !(home && *home == '/')) {
        return opd_fail(OPD_ERROR_REGISTER, "there is no folder for compiled code: neither $XDG_CACHE_HOME nor $HOME "
                        "is an absolute path");
    }
    if (opdi_path(parent, "%s%s", own ? xdg : home, own ? "" : "/.cache")) { return -1; }
    if (opdi_folder_make(parent, at) || opdi_path(path, "%s/opdispatch", at)) { return -1; }
    const bool guarded = opdi_path_guarded(at, true, bad);
    if (opdi_folder_make(path, dir)) { return -1; }
    if (!guarded || !opdi_path_guarded(dir, true, bad) || stat(dir, &s) || s.st_uid != geteuid() || (s.st_mode & 022)) {
        return opd_fail(OPD_ERROR_REGISTER, "the folder %s for compiled code is not safe: %s belongs to another user, "
                        "or others may write in it (set $XDG_CACHE_HOME to another folder)", dir, bad);
    }
    return 0;
}

/* Returns `hash` mixed with the compiler command and with the path, size and time of the compiler, so that another
   version of the compiler gives another key. */
OPDI_INTERNAL uint64_t opdi_hash_compiler(uint64_t hash, const char *command) {
    const size_t n = opdi_command_name(command);
    const char *path = memchr(command, '/', n) ? "" : getenv("PATH");
    char file[OPDI_PATH];
    hash = opdi_hash_text(hash, command);
    for (path = path ? path : "/usr/bin:/bin"; path; path = *path == ':' ? path + 1 : NULL) {
        const size_t length = strcspn(path, ":");
        struct stat s;
        const int len = snprintf(file, sizeof file, "%.*s%s%.*s", (int)length, path, length ? "/" : "", (int)n,
                                 command);
        if (len < (int)sizeof file && stat(file, &s) == 0 && S_ISREG(s.st_mode)) {
            const int64_t id[2] = {(int64_t)s.st_size, (int64_t)s.st_mtime};
            return opdi_hash_bytes(opdi_hash_text(hash, file), id, sizeof id);
        }
        path += length;
    }
    return hash;
}

/* Finds the folder of opdispatch.h by `here`, the path from which the header was compiled.  A relative path is searched
   in the program's folder and the folders above it, but never in the current folder, into which another user may have
   put files.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_header_search(opdi_build *build, const char *here) {
    char at[OPDI_PATH] = "", path[OPDI_PATH], bad[OPDI_PATH], *up;
    if (*here != '/') {
        const ssize_t n = readlink("/proc/self/exe", at, sizeof at - 1);
        at[n > 0 && n < OPDI_PATH ? n : 0] = 0;
    }
    do {
        if ((up = strrchr(at, '/')) != NULL) { *up = 0; }
        if (opdi_path(path, "%s/%s", at, here + (*here == '/'))) { return -1; }
        char *real = realpath(path, NULL);
        if (real && opdi_path_guarded(real, false, bad)) {
            strrchr(real, '/')[1] = 0;
            (void)opdi_path(build->include, "%s", real);
        } else if (real) {
            build->hint = "in the folder where the program was compiled, but other users may change it there";
        }
        free(real);
    } while (up && !*build->include && opd_ok());
    return opd_ok() ? 0 : -1;
}

/* Waits for a process.  Returns its status. */
OPDI_INTERNAL int opdi_wait(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) { return 0; }         /* if SIGCHLD is ignored, there is no status: the caller looks for the
                                                     result */
    }
    return status;
}

/* Starts a command; its output goes to the file `log`.  Sets *process to the process.  Returns 0, or errno if it cannot
   be started. */
OPDI_INTERNAL int opdi_command_start(char *const *argv, const char *log, intptr_t *process) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t children;
    pid_t pid = 0;
    if (opd_code_forbidden(argv[0])) { return EPERM; }
    int rc = posix_spawn_file_actions_init(&files);
    if (rc) { return rc; }
    rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (!rc) { rc = posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600); }
    if (!rc) { rc = posix_spawn_file_actions_adddup2(&files, 1, 2); }
    (void)sigemptyset(&children);                 /* restores the default SIGCHLD: a compiler waits for its linker */
    (void)sigaddset(&children, SIGCHLD);
    if (!rc && (rc = posix_spawnattr_init(&attr)) == 0) {
        rc = posix_spawnattr_setsigdefault(&attr, &children);
        if (!rc) { rc = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF); }
        if (!rc) { rc = posix_spawnp(&pid, argv[0], &files, &attr, argv, environ); }
        (void)posix_spawnattr_destroy(&attr);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    *process = (intptr_t)pid;
    return rc;
}
/* Waits for a command that was started.  Returns whether it succeeded. */
OPDI_INTERNAL bool opdi_command_wait(intptr_t process) { return opdi_wait((pid_t)process) == 0; }
/* Returns the number of processors, at least 1. */
OPDI_INTERNAL int opdi_processors(void) {
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return (int)OPDI_MAX(1, OPDI_MIN(count, 64));
}
