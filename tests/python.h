/* python.h: runs Python scripts that read the files of a test, or continue from them.

   A script (exchange.py, checkpoints.py) runs with the first Python that has the needed packages: $OPD_PYTHON,
   python3, or /usr/bin/python3.  Importing PyTorch takes two seconds, so a Python is only asked whether it finds the
   packages; a script that cannot import them returns 77. */
#ifndef OPD_TESTS_PYTHON_H
#define OPD_TESTS_PYTHON_H

#include "check.h"

/* Skips a test whose Python has returned 77. */
#define SKIP_WITHOUT_PYTHON(package) \
    SKIP(getenv("CHECK_PART") ? "CHECK_PART is set: another build runs Python" : "no python3 with " package)
/* Runs `script ARGUMENTS`.  Copies the last line of its output to `said`.  Returns its exit status; 77: no Python
   has the packages, or CHECK_PART is set (see check.h), because Python reads the same files from each build.  If the
   runner runs the case again, only to see whether it loses memory, the last answer is given again. */
OPD_UNUSED static int python(const char *script, const char *package, const char *arguments, char *said, size_t cap) {
    const char *const named = getenv("OPD_PYTHON");
    const char *const pythons[] = {named ? named : "python3", "python3", "/usr/bin/python3"};
    const char *slash = strrchr(__FILE__, '/');
    static char answered[1500], answer[1000];
    char command[1500], text[1000];
    int i;
    if (check_times > 1 && !strcmp(answered, arguments)) { snprintf(said, cap, "%s", answer); return 0; }
    for (i = 0; i < 3 && !getenv("CHECK_PART"); i++) {
        FILE *f;
        int status;
        snprintf(command, sizeof command, "%s -c 'import importlib.util, sys; sys.exit(not all(importlib.util.find_spec(p) "
                 "for p in sys.argv[1].split(\", \")))' '%s' 2>/dev/null", pythons[i], package);
        if (system(command)) { continue; }
        snprintf(command, sizeof command, "%s %.*s%s %s 2>&1", pythons[i], slash ? (int)(slash - __FILE__ + 1) : 0,
                 __FILE__, script, arguments);
        f = popen(command, "r");
        while (f && fgets(text, sizeof text, f)) { snprintf(said, cap, "%s", text); }
        status = f ? pclose(f) : -1;
        status = status > 255 ? status / 256 : status;
        said[strcspn(said, "\n")] = 0;
        if (!status) { snprintf(answered, sizeof answered, "%s", arguments); snprintf(answer, sizeof answer, "%s", said); }
        if (status != 77) { return status; }                  /* another Python may have the package */
    }
    return 77;
}

/* Runs programs.py, which checks each program in a folder with PyTorch, and removes the folder unless $OPD_TEST_KEEP is
   set.  Returns 77 if no Python has PyTorch. */
OPD_UNUSED static int python_checks_programs(const char *folder, const char *want) {
    char said[1000] = "", arguments[600];
    (void)snprintf(arguments, sizeof arguments, "--each '%s'", folder);
    const int status = python("programs.py", "torch", arguments, said, sizeof said);
    (void)snprintf(arguments, sizeof arguments, "rm -rf '%s'", folder);
    if (!getenv("OPD_TEST_KEEP")) { CHECK_INT(system(arguments), 0); }
    if (status == 77) { return status; }
    if (status) { printf("%s\n", said); }
    CHECK_INT(status, 0);
    CHECK_STR(said, want);
    return status;
}

#endif
