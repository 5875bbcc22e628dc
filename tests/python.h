/* python.h: runs Python scripts that read the files of a test, or continue from them.

   A script (exchange.py, checkpoints.py) runs with the first Python that has the needed package: $OPD_PYTHON,
   python3, or /usr/bin/python3. */
#ifndef OPD_TESTS_PYTHON_H
#define OPD_TESTS_PYTHON_H

#include "check.h"

/* Skips a test whose Python has returned 77. */
#define SKIP_WITHOUT_PYTHON(package) \
    SKIP(getenv("CHECK_PART") ? "CHECK_PART is set: another build runs Python" : "no python3 with " package)
/* Runs `script ARGUMENTS`.  Copies the last line of its output to `said`.  Returns its exit status; 77: no Python
   has the package, or CHECK_PART is set (see check.h), because Python reads the same files from each build. */
OPD_UNUSED static int python(const char *script, const char *package, const char *arguments, char *said, size_t cap) {
    const char *const named = getenv("OPD_PYTHON");
    const char *const pythons[] = {named ? named : "python3", "python3", "/usr/bin/python3"};
    const char *slash = strrchr(__FILE__, '/');
    char command[1500], text[1000];
    int i;
    for (i = 0; i < 3 && !getenv("CHECK_PART"); i++) {
        FILE *f;
        int status;
        snprintf(command, sizeof command, "%s -c 'import %s' 2>/dev/null", pythons[i], package);
        if (system(command)) { continue; }
        snprintf(command, sizeof command, "%s %.*s%s %s 2>&1", pythons[i], slash ? (int)(slash - __FILE__ + 1) : 0,
                 __FILE__, script, arguments);
        f = popen(command, "r");
        while (f && fgets(text, sizeof text, f)) { snprintf(said, cap, "%s", text); }
        status = f ? pclose(f) : -1;
        status = status > 255 ? status / 256 : status;
        said[strcspn(said, "\n")] = 0;
        if (status != 77) { return status; }                  /* another Python may have the package */
    }
    return 77;
}

#endif
