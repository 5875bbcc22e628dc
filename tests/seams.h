/* seams.h: replaces memory functions and limits of the library, for tests.  inside.h includes it; if the files of
   src/ are compiled separately, each of them does. */
#ifndef OPD_TESTS_SEAMS_H
#define OPD_TESTS_SEAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__cplusplus)
extern "C" {
#endif
extern size_t inside_most;       /* larger allocations fail */
extern bool inside_tight;        /* every piece of a schema is an allocation */
extern int64_t inside_mallocs;   /* calls of malloc */
#if defined(OPDISPATCH_IMPLEMENTATION)
#if defined(__GNUC__) && !defined(__TINYC__)
#define INSIDE_COUNT(counter) ((void)__atomic_add_fetch(&(counter), 1, __ATOMIC_RELAXED))
#else
#define INSIDE_COUNT(counter) ((void)++(counter))
#endif
#define OPD_MALLOC(size) (INSIDE_COUNT(inside_mallocs), (size) > inside_most ? NULL : malloc(size))
#define OPD_FREE(pointer) free(pointer)
#define OPDI_ARENA_TIGHT inside_tight
#define OPDI_PLANNING 1          /* under sanitizers, too */
#endif
#if defined(__cplusplus)
}
#endif

#endif /* OPD_TESTS_SEAMS_H */
