/* on_windows.h: POSIX functions that the tests use and mingw-w64 lacks.  tests/windows.sh includes it before each
   test file, and makes empty headers sys/wait.h, sys/mman.h, sys/resource.h and dlfcn.h.  A function that Windows
   cannot have fails here: windows.sh lists the cases that need it. */
#ifndef OPD_TESTS_ON_WINDOWS_H
#define OPD_TESTS_ON_WINDOWS_H

#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

//-- the environment and temporary files -------------------------------------------------------------------------------

static inline int setenv(const char *name, const char *text, int replace) {
    return !replace && getenv(name) ? 0 : _putenv_s(name, text);
}
static inline int unsetenv(const char *name) { return _putenv_s(name, ""); }

/* Writes another name over the last six letters of a template. */
static inline void check_windows_name(char *path) {
    static unsigned made;
    char number[24];
    size_t length = strlen(path);
    (void)snprintf(number, sizeof number, "%06x", (unsigned)(_getpid() * 977 + 7919 * made++) & 0xffffff);
    if (length >= 6) { memcpy(path + length - 6, number, 6); }
}
static inline char *mkdtemp(char *path) {
    int i;
    for (i = 0; i < 100; i++) {
        check_windows_name(path);
        if (_mkdir(path) == 0) { return path; }
        if (errno != EEXIST) { break; }
    }
    return NULL;
}
/* mingw-w64's own keeps others from opening the file. */
static inline int check_windows_mkstemp(char *path) {
    int i, fd = -1;
    for (i = 0; i < 100 && fd < 0; i++) {
        check_windows_name(path);
        fd = _open(path, _O_CREAT | _O_EXCL | _O_RDWR | _O_BINARY, _S_IREAD | _S_IWRITE);
    }
    return fd;
}
#define mkstemp check_windows_mkstemp
#define mkdir(path, mode) _mkdir(path)
/* mingw-w64's own is in the top folder of the drive. */
static inline FILE *check_windows_tmpfile(void) {
    char path[300];
    int fd;
    (void)snprintf(path, sizeof path, "%s/opd_tmp_XXXXXX", getenv("TEMP") ? getenv("TEMP") : ".");
    check_windows_name(path);
    fd = _open(path, _O_CREAT | _O_EXCL | _O_RDWR | _O_BINARY | _O_TEMPORARY, _S_IREAD | _S_IWRITE);
    return fd < 0 ? NULL : _fdopen(fd, "w+b");
}
#define tmpfile check_windows_tmpfile

//-- memory whose access is withdrawn: tests/tensor/test_backend.c -----------------------------------------------------

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 0
#define MAP_ANONYMOUS 0
#define MAP_FAILED ((void *)-1)
extern void *__stdcall VirtualAlloc(void *at, size_t bytes, unsigned long how, unsigned long rights);
extern int __stdcall VirtualFree(void *at, size_t bytes, unsigned long how);
extern int __stdcall VirtualProtect(void *at, size_t bytes, unsigned long rights, unsigned long *old);
static inline void *mmap(void *at, size_t bytes, int rights, int flags, int fd, long offset) {
    void *const data = VirtualAlloc(at, bytes, 0x3000, rights == PROT_NONE ? 1 : 4);
    (void)flags;
    (void)fd;
    (void)offset;
    return data ? data : MAP_FAILED;
}
static inline int munmap(void *at, size_t bytes) {
    (void)bytes;
    return VirtualFree(at, 0, 0x8000) ? 0 : -1;
}
static inline int mprotect(void *at, size_t bytes, int rights) {
    unsigned long old;
    return VirtualProtect(at, bytes, rights == PROT_NONE ? 1 : 4, &old) ? 0 : -1;
}

//-- functions that Windows lacks --------------------------------------------------------------------------------------

static inline int check_windows_lacks(void) {
    errno = ENOSYS;
    return -1;
}
#define fork() check_windows_lacks()
#define waitpid(pid, status, options) ((void)(pid), (void)(options), *(status) = -1, check_windows_lacks())
#define WIFEXITED(status) ((status) == 0)
#define WEXITSTATUS(status) (status)
#define alarm(seconds) ((void)(seconds))
#define pipe(ends) ((void)(ends), check_windows_lacks())
#define symlink(to, path) ((void)(to), (void)(path), check_windows_lacks())
#define readlink(path, to, size) ((void)(path), (void)(to), (void)(size), check_windows_lacks())
#define lstat stat
#define S_ISLNK(mode) ((void)(mode), 0)
#define RLIMIT_FSIZE 0
#define SIGXFSZ SIGABRT
struct rlimit { unsigned long long rlim_cur, rlim_max; };
#define getrlimit(what, limit) ((limit)->rlim_cur = (limit)->rlim_max = 0, check_windows_lacks())
#define setrlimit(what, limit) ((void)(limit), check_windows_lacks())
#define RTLD_NOW 0
#define RTLD_LOCAL 0
#define dlopen(path, flags) ((void)(path), (void *)NULL)
#define dlsym(library, name) ((void)(library), (void)(name), (void *)NULL)
#define dlclose(library) ((void)(library), 0)

#endif /* OPD_TESTS_ON_WINDOWS_H */
