/* A library for LD_PRELOAD.  It kills the process when it renames a file to a name that contains KILLED_RENAME.  It
   waits a second before, until other processes have finished their files. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rename(const char *from, const char *to) {
    int (*next)(const char *, const char *) = NULL;
    void *const found = dlsym(RTLD_NEXT, "rename");
    const char *const part = getenv("KILLED_RENAME");
    if (part && strstr(to, part)) {
        (void)sleep(1);
        (void)kill(getpid(), SIGKILL);
    }
    memcpy(&next, &found, sizeof next);
    return next(from, to);
}
