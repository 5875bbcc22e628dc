/* The cache of code that is compiled at run time: its size, files that are not what they seem, and folders that cannot be
   used.  The compiler is a script, which counts its calls and makes no code. */
#include "../../opdispatch.h"
#include "../check.h"

#if defined(__unix__) && !defined(OPD_NO_PLUGINS)
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[400];                          /* has the script, its log, and the folder opdispatch */

static void clean_up(void) {
    char command[500];
    snprintf(command, sizeof command, "chmod -R u+w '%s'; rm -rf '%s'", folder, folder);
    if (*folder && system(command)) { printf("cannot remove %s\n", folder); }
}
static void put(const char *name, const char *text, mode_t mode) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "w");
    CHECK_OR_RETURN(file != NULL);
    CHECK(fputs(text, file) >= 0 && fclose(file) == 0 && chmod(path, mode) == 0);
}
static void set_up(void) {
    const char *const tmp = getenv("TMPDIR");
    char path[700];
    if (!*folder) {
        snprintf(folder, sizeof folder, "%s/opd_cache.%ld", tmp && *tmp == '/' ? tmp : "/tmp", (long)getpid());
        (void)mkdir(folder, 0755);
        (void)atexit(clean_up);
        put("compiler", "#!/bin/sh\ncase \"$*\" in *-c*) echo one >>\"${0%/*}/log\" ;; esac\n"
            "while [ $# -gt 1 ]; do [ \"$1\" != -o ] || echo \"$*\" >\"$2\"; shift; done\n", 0755);
        (void)setenv("OPD_INCLUDE", check_include(), 0);
    }
    snprintf(path, sizeof path, "%s/compiler", folder);
    (void)setenv("CC", path, 1);
    (void)setenv("XDG_CACHE_HOME", folder, 1);
}
/* Returns how often the compiler has compiled. */
static int compilations(void) {
    char path[700];
    snprintf(path, sizeof path, "%s/log", folder);
    FILE *const file = fopen(path, "r");
    int count = 0, letter;
    while (file && (letter = getc(file)) != EOF) { count += letter == '\n'; }
    if (file) { (void)fclose(file); }
    return count;
}
/* Compiles source text number `which`.  Its result is no library, which is the only error. */
static void compile(int which) {
    char source[60];
    snprintf(source, sizeof source, "int number_%d;\n", which);
    CHECK(!opd_compile_and_load_inline("cached", source, NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not a shared library");
}

//-- size --------------------------------------------------------------------------------------------------------------

/* Makes a file of the cache with 100 MB, which take no space on the disk, and that was used some seconds ago. */
static void make_large(const char *name, long ago) {
    char path[700];
    struct timeval times[2];
    snprintf(path, sizeof path, "%s/opdispatch/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 100 << 20) == 0 && close(fd) == 0);
    CHECK(gettimeofday(&times[0], NULL) == 0);
    times[0].tv_sec -= ago;
    times[1] = times[0];
    CHECK_INT(utimes(path, times), 0);
}
static bool is_there(const char *name) {
    char path[700];
    snprintf(path, sizeof path, "%s/opdispatch/%s", folder, name);
    return access(path, F_OK) == 0;
}
/* Compiles until the cache is looked through. */
static void look_through(void) {
    static int number = 1000;
    for (int i = 0; i < 16; i++) { compile(number++); }
}
/* The files that were not used for the longest time go first.  Other files, and files that were just used, stay. */
TEST(limit_of_the_cache) {
    char name[80], line[700];
    set_up();
    compile(1);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "old-00000000000000%02x.%s", i, i % 2 ? "so" : "deps");
        make_large(name, 10000 + 1000 * ((i + 3) % 10));
    }
    make_large("notes-about-my-programs.txt", 1000000);
    look_through();                               /* the limit is 512 MB, of which 448 stay */
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "old-00000000000000%02x.%s", i, i % 2 ? "so" : "deps");
        CHECK_INT(is_there(name), (i + 3) % 10 < 4);
    }
    (void)setenv("OPD_CACHE_MB", "250", 1);
    make_large("new-0000000000000001.so", 10);
    make_large("new-0000000000000002.so", 1000);
    make_large("new-0000000000000003.so", 3000);
    look_through();
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "old-00000000000000%02x.%s", i, i % 2 ? "so" : "deps");
        CHECK(!is_there(name));
    }
    CHECK(is_there("new-0000000000000001.so") && is_there("new-0000000000000002.so") && is_there("new-0000000000000003.so"));
    CHECK(is_there("notes-about-my-programs.txt"));
    (void)unsetenv("OPD_CACHE_MB");
    snprintf(line, sizeof line, "rm -f '%s'/opdispatch/new-* '%s'/opdispatch/notes*", folder, folder);
    CHECK_INT(system(line), 0);
    const int before = compilations();
    compile(1);
    CHECK_INT(compilations(), before);
}
/* Makes all files of the cache old, or returns the time of the oldest one. */
static time_t times_of_files(bool make_old) {
    const struct timeval old[2] = {{1000000000, 0}, {1000000000, 0}};
    char path[700];
    struct stat s;
    time_t oldest = time(NULL) + 1000;
    snprintf(path, sizeof path, "%s/opdispatch", folder);
    DIR *const d = opendir(path);
    const struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        if (*e->d_name == '.') { continue; }
        snprintf(path, sizeof path, "%s/opdispatch/%.200s", folder, e->d_name);
        if (make_old) { CHECK_INT(utimes(path, old), 0); }
        else if (stat(path, &s) == 0 && s.st_mtime < oldest) { oldest = s.st_mtime; }
    }
    if (d) { (void)closedir(d); }
    return oldest;
}
TEST(used_files_are_new) {
    char line[700];
    set_up();
    snprintf(line, sizeof line, "rm -rf '%s/opdispatch'", folder);
    CHECK_INT(system(line), 0);
    compile(2);
    (void)times_of_files(true);
    CHECK(times_of_files(false) == 1000000000);
    const int before = compilations();
    compile(2);
    CHECK_INT(compilations(), before);
    CHECK(times_of_files(false) > time(NULL) - 1000);
}

//-- files that are not what they seem ---------------------------------------------------------------------------------

/* Finds the only library of the cache. */
static void find_library(char *path, size_t cap) {
    snprintf(path, cap, "%s/opdispatch", folder);
    DIR *const d = opendir(path);
    const struct dirent *e;
    int found = 0;
    while (d && (e = readdir(d)) != NULL) {
        if (!strstr(e->d_name, ".so")) { continue; }
        snprintf(path, cap, "%s/opdispatch/%.200s", folder, e->d_name);
        found++;
    }
    if (d) { (void)closedir(d); }
    CHECK_INT(found, 1);
}
static void empty_cache(void) {
    char line[700];
    snprintf(line, sizeof line, "rm -rf '%s/opdispatch'", folder);
    CHECK_INT(system(line), 0);
}
/* A library that was made under another name is built again, although it is whole. */
TEST(library_under_another_name) {
    char first[700], second[700], line[2000];
    set_up();
    empty_cache();
    compile(3);
    find_library(first, sizeof first);
    snprintf(line, sizeof line, "mv '%s' '%s/moved'", first, folder);
    CHECK_INT(system(line), 0);
    compile(4);
    find_library(second, sizeof second);
    const int before = compilations();
    compile(4);
    CHECK_INT(compilations(), before);
    snprintf(line, sizeof line, "mv '%s/moved' '%s'", folder, second);
    CHECK_INT(system(line), 0);
    compile(4);
    CHECK_INT(compilations(), before + 1);
    compile(4);
    CHECK_INT(compilations(), before + 1);
}
/* A source file of the cache that was changed is written again. */
TEST(source_that_was_changed) {
    char line[900];
    set_up();
    empty_cache();
    compile(5);
    snprintf(line, sizeof line, "for f in '%s'/opdispatch/*.c; do echo 'int other;' >$f; done", folder);
    CHECK_INT(system(line), 0);
    const int before = compilations();
    compile(5);
    CHECK_INT(compilations(), before);
    snprintf(line, sizeof line, "grep -q number_5 '%s'/opdispatch/*.c", folder);
    CHECK_INT(system(line), 0);
}

//-- folders that cannot be used ---------------------------------------------------------------------------------------

/* Compiles with this folder for caches, and checks the error. */
static void check_refused(const char *home, const char *why, const char *advice) {
    (void)setenv("XDG_CACHE_HOME", home, 1);
    CHECK(!opd_compile_and_load_inline("refused", "int refused;\n", NULL));
    CHECK(strstr(opd_error_message(), advice) != NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, why);
    (void)setenv("XDG_CACHE_HOME", folder, 1);
}
TEST(folders_that_are_none) {
    char path[700], link[720];
    set_up();
    check_refused("/dev/null", "cannot write /dev/null: Not a directory", "set $XDG_CACHE_HOME to a folder that this program");
    check_refused("/no/such/folder", "cannot write /no/such/folder: No such file", "set $XDG_CACHE_HOME");
    snprintf(path, sizeof path, "%s/home", folder);
    snprintf(link, sizeof link, "%s/opdispatch", path);
    CHECK_INT(mkdir(path, 0700), 0);
    CHECK_INT(symlink("/no/such/folder", link), 0);
    check_refused(path, "home/opdispatch: No such file", "set $XDG_CACHE_HOME");
    CHECK_INT(unlink(link), 0);
    const int fd = open(link, O_WRONLY | O_CREAT, 0600);
    CHECK_INT(close(fd), 0);
    check_refused(path, "home/opdispatch: Not a directory", "set $XDG_CACHE_HOME");
    CHECK_INT(unlink(link), 0);
}
/* The folder may be a link to another one, which must be as safe. */
TEST(folders_that_are_links) {
    char path[700], link[720], other[700], wanted[800];
    struct stat s;
    set_up();
    snprintf(path, sizeof path, "%s/linked", folder);
    snprintf(link, sizeof link, "%s/opdispatch", path);
    snprintf(other, sizeof other, "%s/large disk", folder);
    CHECK(mkdir(path, 0700) == 0 && mkdir(other, 0700) == 0 && symlink(other, link) == 0);
    (void)setenv("XDG_CACHE_HOME", path, 1);
    compile(6);
    snprintf(wanted, sizeof wanted, "ls '%s' | grep -q so$", other);
    CHECK_INT(system(wanted), 0);
    CHECK(lstat(link, &s) == 0 && S_ISLNK(s.st_mode));
    CHECK_INT(chmod(other, 0777), 0);
    check_refused(path, "large disk belongs to another user, or others may write in it", "set $XDG_CACHE_HOME");
    CHECK_INT(chmod(other, 0700), 0);
}
/* Runs a child process, as another user if this is root, and checks the error that it gets. */
static void check_child_refused(const char *home, bool as_other, const char *why, const char *advice) {
    int status = -1;
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        (void)setenv("XDG_CACHE_HOME", home, 1);
        if (as_other && geteuid() == 0 && (setgid(65534) || setuid(65534))) { CHECK_CHILD_ENDS(3); }
        if (!as_other) {
            const struct rlimit few = {200, 200};
            (void)signal(SIGXFSZ, SIG_IGN);
            if (setrlimit(RLIMIT_FSIZE, &few)) { CHECK_CHILD_ENDS(3); }
        }
        char source[400];
        snprintf(source, sizeof source, "int refused; /* %300s */\n", "");
        opd_plugin *const none = opd_compile_and_load_inline("refused", source, NULL);
        const bool right = !none && strstr(opd_error_message(), why) && strstr(opd_error_message(), advice);
        opd_error_clear();
        CHECK_CHILD_ENDS(right ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
TEST(folder_that_cannot_be_written) {
    char path[700], below[720];
    set_up();
    snprintf(path, sizeof path, "%s/closed", folder);
    snprintf(below, sizeof below, "%s/opdispatch", path);
    CHECK(mkdir(path, 0700) == 0);
    if (geteuid() == 0) { CHECK_INT(chown(path, 65534, 65534), 0); }
    CHECK_INT(chmod(path, 0500), 0);
    check_child_refused(path, true, "closed/opdispatch: Permission denied", "to a folder that this program can write");
    CHECK_INT(chmod(path, 0700), 0);
    CHECK(mkdir(below, 0700) == 0);
    if (geteuid() == 0) { CHECK_INT(chown(below, 65534, 65534), 0); }
    CHECK_INT(chmod(below, 0500), 0);
    check_child_refused(path, true, ": Permission denied", "to a folder that this program can write");
    CHECK_INT(chmod(below, 0700), 0);
}
/* A file that must not grow stands for a disk that is full. */
TEST(disk_that_is_full) {
    set_up();
    check_child_refused(folder, false, "cannot write ", "make room there, or set $XDG_CACHE_HOME to a folder on another disk");
}
#else
TEST(no_plugins) {
    CHECK(!opd_compile_and_load_inline("cached", "int number;\n", NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "OPD_NO_PLUGINS");
}
#endif

CHECK_MAIN()
