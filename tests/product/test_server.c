/* The example examples/server.c: threads answer requests with a model that is loaded again meanwhile, and bad requests
   get errors.  The example checks its own counts.  THREADED.  C ONLY: designated initializers, main under another
   name. */
#define _GNU_SOURCE 1             /* for mkdtemp and realpath */
#include "../../opdispatch.h"
#include "../check.h"
#define OPDI_IMPLEMENTED          /* the example must not compile the library again */
#define OPDISPATCH_WRAPPERS
#define main server_main
#define opd_finish() (opd_ok() ? 0 : 1)      /* it would end the scope of the test */
#include "../../examples/server.c"
#undef main
#if !defined(_WIN32)
#include <unistd.h>
#endif

/* The example writes files into the folder where it runs, so it gets one of its own. */
TEST(all_requests_are_answered) {
#if defined(_WIN32) || defined(__wasm__)
    SKIP("needs symbolic links and threads");
#else
    const char *const slash = strrchr(__FILE__, '/');
    char folder[] = "/tmp/opd_server.XXXXXX", here[1000], path[1100], *examples;
    (void)snprintf(path, sizeof path, "%.*s../../examples", slash ? (int)(slash - __FILE__ + 1) : 0, __FILE__);
    examples = realpath(path, NULL);
    CHECK(getcwd(here, sizeof here) && examples && mkdtemp(folder));
    CHECK(chdir(folder) == 0 && symlink(examples, "examples") == 0);
    submitted = taken = 0;                        /* as at the beginning of a program, if the case runs twice */
    closed = false;
    current = NULL;
    memset(requests, 0, sizeof requests);
    CHECK_INT(server_main(), 0);
    CHECK(unlink("examples") == 0 && chdir(here) == 0 && rmdir(folder) == 0);
    free(examples);
#endif
}

CHECK_MAIN()
