/* A compiler for programs under wine, where mingw-w64's gcc for Linux does not run: passes its arguments to
   tests/windows.sh, which runs gcc, and prints what gcc has printed.  Arguments, output and status are files in the
   folder that OPD_REQUESTS names.  Build with -municode. */
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

static const char *file_of(const char *ending) {
    static char paths[2][600];
    static int k;
    const char *const folder = getenv("OPD_REQUESTS");
    k = !k;
    (void)snprintf(paths[k], sizeof paths[k], "%s/%d.%s", folder ? folder : ".", _getpid(), ending);
    return paths[k];
}
static int failed(const char *what) {
    perror(what);
    return 1;
}
int wmain(int argc, wchar_t **argv) {
    char word[2000];
    int i, c, status = 1;
    FILE *file = fopen(file_of("new"), "wb");
    if (!file) { return failed("cannot make a request"); }
    for (i = 1; i < argc; i++) {
        if (WideCharToMultiByte(CP_UTF8, 0, argv[i], -1, word, sizeof word, NULL, NULL) == 0) { return failed("an argument"); }
        (void)fprintf(file, "%s\n", word);
    }
    (void)fclose(file);
    if (rename(file_of("new"), file_of("request"))) { return failed("cannot rename a request"); }
    for (i = 0; i < 3000 && !(file = fopen(file_of("status"), "rb")); i++) { Sleep(20); }
    if (!file || fscanf(file, "%d", &status) != 1) { return failed("no answer"); }
    (void)fclose(file);
    if ((file = fopen(file_of("output"), "rb")) != NULL) {
        while ((c = getc(file)) != EOF) { (void)putchar(c); }
        (void)fclose(file);
    }
    (void)remove(file_of("status"));
    (void)remove(file_of("output"));
    return status;
}
