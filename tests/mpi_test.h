/* For tests whose ranks are MPI processes.  OK reports a false condition, with the rank and the line. */
#ifndef OPD_TESTS_MPI_TEST_H
#define OPD_TESTS_MPI_TEST_H
#include "../opdispatch.h"

#include <stdio.h>

static int rank_here, size_here, mistakes;
#define OK(cond) do { \
        if (!(cond)) { \
            mistakes++; \
            (void)fprintf(stderr, "rank %d of %d: line %d: %s%s%s\n", rank_here, size_here, __LINE__, #cond, \
                          opd_ok() ? "" : ": ", opd_ok() ? "" : opd_error_message()); \
            opd_error_clear(); \
        } \
    } while (0)
#endif
