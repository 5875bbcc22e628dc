/* For test_aoti.c and test_extension.c: compiles libraries as if PyTorch were installed, in a temporary folder,
   linked with an empty libtorch.so. */
#ifndef OPD_TESTS_BESIDE_TORCH_H
#define OPD_TESTS_BESIDE_TORCH_H

#include "check.h"
#include <stdarg.h>

static char folder[300];
static void remove_folder(void) {
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (*folder && system(command)) { printf("cannot remove %s\n", folder); }
}
/* Returns the folder of the tests. */
static const char *here(void) {
    static char text[600];
    const char *slash = strrchr(__FILE__, '/');
    snprintf(text, sizeof text, "%.*s", slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".");
    return text;
}
static const char *compiler(bool cxx) {
    const char *named = getenv(cxx ? "CXX" : "CC");
    return named && *named ? named : cxx ? "c++" : "cc";
}
static bool shell(const char *format, ...) {
    char command[3000];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command) == 0;
}
/* Makes the temporary folder with libtorch.so and libtorch_cpu.so.  Returns false if there is no compiler that links
   like GNU's. */
static bool make_folder(void) {
    static bool linked;
    const char *tmp = getenv("TMPDIR");
    if (*folder) { return linked; }
    snprintf(folder, sizeof folder, "%.200s/opd_beside_torch.%ld", tmp && *tmp == '/' ? tmp : "/tmp", (long)getpid());
    (void)atexit(remove_folder);
    CHECK(mkdir(folder, 0700) == 0);
    linked = shell("cd '%s' && echo 'int opd_nothing;' >torch.c && %s -shared -fPIC torch.c -o libtorch.so "
                   "-Wl,--no-as-needed -Wl,-soname,libtorch.so && cp libtorch.so libtorch_cpu.so", folder, compiler(false));
    return linked;
}
/* Returns the path of a library that is compiled from a test file at the first call.  NULL: there is no compiler. */
static const char *library_of(const char *source, const char *name, bool cxx, const char *flags) {
    static char path[400];
    if (!make_folder() || !shell("%s --version >/dev/null 2>&1", compiler(cxx))) { return NULL; }
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    if (access(path, R_OK) == 0) { return path; }
    CHECK(shell("%s -O1 -w -shared -fPIC -I'%s' %s -x %s '%s/%s' -x none -L'%s' -Wl,--no-as-needed -ltorch "
                "-Wl,--as-needed -lm -o '%s'", compiler(cxx), here(), flags, cxx ? "c++" : "c", here(), source, folder, path));
    return path;
}
/* Writes a file with these bytes to the folder.  Returns its path. */
static const char *put(const char *name, const unsigned char *data, size_t count) {
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(data, 1, count, file) == count);
    if (file) { (void)fclose(file); }
    return path;
}
#endif
